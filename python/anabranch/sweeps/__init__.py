"""Sweeps: a scenario under many combinations of factors, and what changes between them."""
