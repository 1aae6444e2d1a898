"""Values that every layer shares: no I/O, no vendor, frozen."""
