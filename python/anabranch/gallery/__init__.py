"""The gallery: published results as experiments with claims."""
