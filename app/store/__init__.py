"""What the bridge remembers: one SQLite file, one writer, the only SQL."""
