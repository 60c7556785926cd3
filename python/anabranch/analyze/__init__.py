"""Captures: what Multipath TCP did in them, and what of it breaks RFC 8684."""

from anabranch.analyze.analysis import analyze

__all__ = ["analyze"]
