"""Many runs: each is reduced and recorded, none is lost or repeated."""
