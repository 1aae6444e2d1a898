"""What is written inside somebody's commit: functions of a connection, used by several ports.

Nothing here begins or ends a commit; whatever must be true together is called together.
"""
