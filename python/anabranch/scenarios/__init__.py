"""Scenarios as Python objects, with the user's own policies."""
