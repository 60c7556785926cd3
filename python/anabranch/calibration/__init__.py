"""How far virtual time deviates from Linux: scenarios, deviations, and the entry that runs them."""
