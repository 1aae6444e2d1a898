"""Names places, messages and our own comments on GitHub; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from app.core.keys import PlaceKey
from app.errors import NotFound

SERVICE = "github"

Kind = Literal["issue", "comment", "review", "review-comment", "label", "seen"]
"""`seen` stands for a reaction, where nothing else of ours can be seen yet."""

_SPOT = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+):(?P<number>[0-9]{1,12})", re.ASCII)
_LINK = re.compile(r"/(?P<repository>[\w.-]+/[\w.-]+)/pull/(?P<number>[0-9]{1,12})$", re.ASCII)
_NAME = re.compile(
    r"(?P<kind>issue|comment|review|review-comment|label|seen)-(?P<id>[0-9]{1,20})(@(?P<at>.*))?"
)


@dataclass(frozen=True, slots=True)
class Spot:
    """An issue or a pull request: GitHub numbers both together."""

    repository: str
    number: int

    def __str__(self) -> str:
        return f"{self.repository}:{self.number}"

    @property
    def place(self) -> PlaceKey:
        """The place that it is."""
        return PlaceKey(SERVICE, str(self))

    @property
    def owner(self) -> str:
        """Whose repository it is in."""
        return self.repository.partition("/")[0]

    @classmethod
    def linked(cls, link: str) -> Spot | None:
        """Parse the address of a pull request; None if it is not one."""
        found = _LINK.search(link)
        return cls(found["repository"], int(found["number"])) if found is not None else None

    @classmethod
    def parse(cls, text: str) -> Spot:
        """Parse the name of a place, or the middle of a session key.

        Raises:
            NotFound: it names no issue.
        """
        found = _SPOT.fullmatch(text)
        if found is None:
            raise NotFound("issue", text)
        return cls(found["repository"], int(found["number"]))


@dataclass(frozen=True, slots=True)
class Name:
    """A message or another thing on GitHub: the same for every App that receives it."""

    kind: Kind
    id: int
    at: str = ""
    """Distinguishes an edit, or one of several labels, from what was there before."""

    def __str__(self) -> str:
        return f"{self.kind}-{self.id}{f'@{self.at}' if self.at else ''}"

    def is_same(self, other: Name) -> bool:
        """Tell whether two names mean the same thing, before or after an edit."""
        return (self.kind, self.id) == (other.kind, other.id)

    @classmethod
    def parse(cls, text: str) -> Name | None:
        """Parse a name; None if it is not one of ours."""
        found = _NAME.fullmatch(text)
        if found is None:
            return None
        kind: Kind = found["kind"]  # type: ignore[assignment]  # the pattern lists the kinds
        return cls(kind, int(found["id"]), found["at"] or "")
