"""Results: metrics, estimates, claims, and where they come from."""
