"""The checks of `doctor` that are about this machine and its agents."""
