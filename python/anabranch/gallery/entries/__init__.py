"""Published results, one file each: cells, claims and panels."""
