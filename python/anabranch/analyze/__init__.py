"""Captures: their Multipath TCP connections and violations of RFC 8684."""

from anabranch.analyze.analysis import analyze

__all__ = ["analyze"]
