"""Limits turns: how many run at once, how long, at what cost, and what providers allow."""
