"""Runs an agent outside of any conversation: to probe what it can do, and to log it in."""
