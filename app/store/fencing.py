"""Lets a process commit only as long as it is a member, where several bridges share a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from app.errors import StoreUnavailable
from app.store.tables import member

_OWN = select(member.c.name).where(
    member.c.name == bindparam("name"), member.c.epoch == bindparam("epoch")
)


@dataclass(slots=True)
class Fence:
    """Stands before every commit of this process."""

    gone: Callable[[], None]
    """Is called in the writer's thread when another member has removed this one."""
    name: str = ""
    epoch: int = 0
    """Counts the starts under this name; zero while this process is no member."""

    def find(self, connection: Connection) -> bool:
        """Tell whether this process is a member."""
        own = {"name": self.name, "epoch": self.epoch}
        return connection.execute(_OWN, own).first() is not None

    def check(self, connection: Connection) -> None:
        """Let the commit that begins here go on if this process is still a member.

        Raises:
            StoreUnavailable: it is not.
        """
        if self.epoch and not self.find(connection):
            self.gone()
            raise StoreUnavailable("another member has taken over from this one")
