"""Scenarios as scripts for real kernels, and scripts as scenarios."""
