"""Deviation of virtual time from Linux: scenarios, deviations, and the entry that runs them."""
