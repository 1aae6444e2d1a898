"""Runs child processes: what they see, how they start, run and stop.

Nothing here knows what a process is for; that is up to `acp`, `repos` and `agents`.
"""
