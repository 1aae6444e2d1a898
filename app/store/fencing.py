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
    """Tells this start from all others under its name; zero while this process is no member."""

    @property
    def mark(self) -> str:
        """The statement that counts a commit of this process, if it is a member."""
        change = "update member set commits = commits + 1"
        return f"{change} where {self._own} returning commits"

    @property
    def count(self) -> str:
        """The query for the number of its commits."""
        return f"select commits from member where {self._own}"  # noqa: S608 - our own words

    @property
    def _own(self) -> str:
        name = self.name.replace("'", "''")
        return f"name = '{name}' and epoch = {self.epoch}"

    def refuse(self) -> NoReturn:
        """End what this process does, because it is no member any more.

        Raises:
            StoreUnavailable: always.
        """
        self.gone()
        raise StoreUnavailable("another member has taken over from this one")
