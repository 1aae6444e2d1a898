"""Processes that the bridge starts: what they see, how they run, how they end.

Nothing here knows what a process is for; `acp`, `repos` and `agents` say that.
"""
