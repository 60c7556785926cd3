"""Runs in real time, and the namespaces that they need."""
