"""How often each verdict is said where it is false, and where it is true: ``python -m benchmarks calibration``."""
