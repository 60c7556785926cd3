"""The pictures of the pages about policies, drawn from runs."""
