"""Sweeps: a scenario under many combinations of factors; comparisons of results."""
