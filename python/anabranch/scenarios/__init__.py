"""Scenarios: what is run, and the policies of the user's own in it."""
