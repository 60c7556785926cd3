"""Batches of runs. Each run is reduced and recorded; finished runs are never lost or repeated."""
