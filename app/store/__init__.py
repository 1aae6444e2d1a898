"""Stores the bridge's data: one SQLite file, one writer, the only SQL."""
