"""What several entries have in common."""
