"""Sweeps of a scenario over combinations of factors, and comparisons of results."""
