"""Results: metrics, estimates, claims and provenance."""
