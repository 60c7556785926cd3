"""What several entries share."""
