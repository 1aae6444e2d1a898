"""Stores the bridge's data in a SQLite file or on PostgreSQL: one writer, the only SQL."""
