"""Published results, one file each: what is run, what is claimed, what is drawn."""
