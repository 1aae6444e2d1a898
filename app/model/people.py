"""Values of people who sign in: who they are, and what their role lets them do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LINK: Final = "link"
"""The provider of people who were named with a log-in link."""


class Role(StrEnum):
    """What a person may do here; each role may do all that those before it may."""

    NONE = "none"
    """Nothing: their role was taken away."""
    VIEWER = "viewer"
    """Read."""
    MEMBER = "member"
    """Talk with agents and answer what they ask."""
    ADMIN = "admin"
    """Everything: agents, settings, people."""

    def covers(self, needed: Role) -> bool:
        """Tell whether this role may do what another one may."""
        return _RANKS[self] >= _RANKS[needed]

    def limited_to(self, most: Role) -> Role:
        """Return the lesser of two roles."""
        return self if most.covers(self) else most


_RANKS: Final = {role: number for number, role in enumerate(Role)}
GIVEN: Final = (Role.VIEWER, Role.MEMBER, Role.ADMIN)
"""The roles that people are given."""


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who signs in to the page or has a token for the API."""

    id: int
    name: str
    role: Role
    provider: str
    """Who vouches for them: `link`."""
    created_at: float = 0.0
    seen_at: float | None = None
    """When they last signed in."""
    disabled_at: float | None = None

    @property
    def speaker(self) -> str:
        """The id under which messages of the page name them: their name may change."""
        return f"person-{self.id}"


@dataclass(frozen=True, slots=True)
class Token:
    """A secret with which a person's scripts use the API; only its hash is stored."""

    id: int
    person: int
    name: str
    """What it is for, in the words of who made it."""
    role: Role
    """The most that it may do, whatever its person may."""
    created_at: float
    expires_at: float
    used_at: float | None = None
    revoked_at: float | None = None

    def state(self, now: float) -> str:
        """Return `active`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= now else "active"
