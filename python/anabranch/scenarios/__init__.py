"""Scenarios as objects, and users' own policies in them."""
