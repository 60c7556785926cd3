"""Runs in real time, and the lab that they need."""
