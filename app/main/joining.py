"""Makes this process a member where its database is one that several bridges can share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from app.core.stores.members import HandedOut
from app.main.resources import Resources

if TYPE_CHECKING:
    from app.main.fleet import Fleet


def open_fleet(
    base: Resources,
    *,
    open_desk: Callable[[], Awaitable[None]],
    handed_out: Callable[[HandedOut], None],
) -> Fleet | None:
    """Prepare to be a member; None on SQLite, where there is one bridge."""
    if base.configuration.database_file is not None:
        return None
    # The import takes 0.2 s, and only PostgreSQL needs it.
    from app.main.fleet import Fleet  # noqa: PLC0415

    return Fleet(base, open_desk=open_desk, handed_out=handed_out)
