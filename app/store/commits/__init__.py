"""Writes inside the caller's commit: functions of a connection, used by several ports.

Nothing here begins or ends a commit; what must be true together is called together.
"""
