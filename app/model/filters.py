"""Value that narrows a list of stored things down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What a list is to contain; what is None does not matter."""

    agent: str | None = None
    """Only what belongs to the agent with this id."""
    service: str | None = None
    """Only what is on this service."""
    state: str | None = None
    since: float | None = None
    """Only what happened at this time or later, in seconds since 1970."""


EVERYTHING: Final = ListFilter()
