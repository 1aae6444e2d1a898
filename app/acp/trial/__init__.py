"""Visits to an agent outside of any conversation: to try what it can do, and to log it in."""
