"""Runs of scenarios in virtual time, here or elsewhere."""
