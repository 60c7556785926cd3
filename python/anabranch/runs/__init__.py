"""Runs in virtual time, and the executors that spread them."""
