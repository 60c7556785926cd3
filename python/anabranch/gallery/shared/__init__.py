"""Code that several entries share."""
