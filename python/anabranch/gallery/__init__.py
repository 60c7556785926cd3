"""The gallery: published results, made again and judged."""
