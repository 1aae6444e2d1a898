"""Measures the bridge against the limits of the machine and against peers, as ratios in one run."""
