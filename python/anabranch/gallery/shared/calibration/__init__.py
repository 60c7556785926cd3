"""The scenarios of the calibration, and how far the engine is from Linux in them."""
