"""Runs in real time, and where they are possible."""
