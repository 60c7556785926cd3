"""Results: what is measured, estimated and claimed, and where it comes from."""
