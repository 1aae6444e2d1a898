"""Lets a process commit only as long as it is a member, where several bridges share a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from app.errors import StoreUnavailable


@dataclass(slots=True)
class Fence:
    """Guards every commit of this process."""

    gone: Callable[[], None]
    """Is called in the writer's thread when another member has removed this one."""
    name: str = ""
    epoch: int = 0
    """Counts the starts under this name; zero while this process is no member."""

    @property
    def condition(self) -> str:
        """What is true at the beginning of a commit as long as this process is a member."""
        if not self.epoch:
            return ""
        name = self.name.replace("'", "''")
        return f"exists (select from member where name = '{name}' and epoch = {self.epoch})"

    def refuse(self) -> NoReturn:
        """End what this process does, because it is no member any more.

        Raises:
            StoreUnavailable: always.
        """
        self.gone()
        raise StoreUnavailable("another member has taken over from this one")
