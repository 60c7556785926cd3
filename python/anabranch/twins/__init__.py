"""The scenario that explains a capture, and how far it is off."""
