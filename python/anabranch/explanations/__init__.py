"""Explain why a connection was slow, and what would help."""
