"""Many runs: what is kept of each, and how none is lost or made twice."""
