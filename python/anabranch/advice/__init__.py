"""Advice on buffers, paths and policies for a scenario, or for paths."""
