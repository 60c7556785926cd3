"""Runs in virtual time, and the executors that distribute them."""
