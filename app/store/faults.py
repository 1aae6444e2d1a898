"""Tells faults of a database from those of a statement."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, PendingRollbackError

from app.errors import StoreUnavailable

READ_ONLY = "25006"
"""PostgreSQL's code for a server that takes no writes, such as one that another has replaced."""
LOCK_TIMEOUT = "55P03"
"""PostgreSQL's code for a lock that was not free in time."""


def has_failed(error: Exception) -> bool:
    """Whether the cause is the database, not the statement: locked, full, damaged, away."""
    if isinstance(error, OperationalError | InterfaceError | PendingRollbackError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    return (
        error.connection_invalidated
        or getattr(error.orig, "sqlstate", "") == READ_ONLY
        or "malformed" in str(error.orig)
    )


def is_locked(error: Exception) -> bool:
    """Whether a lock of another session was not free in time."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == LOCK_TIMEOUT


def describe_cause(error: Exception) -> str:
    """Return a short cause; SQLAlchemy's own message would print the statement and its values."""
    if isinstance(error, StoreUnavailable):
        return error.cause
    if is_locked(error):
        return "database is locked"
    original = getattr(error, "orig", None)
    return str(original if original is not None else error) or type(error).__name__
