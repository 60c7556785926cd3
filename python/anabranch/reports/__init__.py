"""Figures and reports of any results."""
