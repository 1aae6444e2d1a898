"""Holds whether an agent can work, and why not, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from app.model import wording

State = Literal["ready", "unavailable", "login_needed", "limited"]


_WORST_FIRST: Final[tuple[State, ...]] = ("unavailable", "login_needed", "limited")


_ORDER: Final = (
    "command",
    "isolation",
    "key",
    "files",
    "initialize",
    "login",
    "limit",
    "last turn",
)


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """What one check found about an agent."""

    name: str
    ok: bool
    words: str
    remedy: str = ""
    state: State = "ready"
    """What the agent is because of it; `ready` if it can work all the same."""
    until: float | None = None
    """When that is over, in seconds since 1970; None if unknown."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an agent can work, and if not, why and what to do."""

    state: State = "ready"
    reason: str = ""
    remedy: str = ""
    version: str = ""
    checks: tuple[AgentCheck, ...] = ()

    @classmethod
    def of(cls, checks: Iterable[AgentCheck], version: str = "") -> Availability:
        """Judge by the worst check."""
        listed = tuple(sorted(checks, key=lambda check: _ORDER.index(check.name)))
        for state in _WORST_FIRST:
            for check in listed:
                if check.state == state:
                    return cls(state, check.words, check.remedy, version, listed)
        return cls(version=version, checks=listed)

    @property
    def label(self) -> str:
        """The state in a word or two."""
        return wording.AVAILABILITY[self.state]

    @property
    def words(self) -> str:
        """What is wrong and what to do; empty if nothing is."""
        return " ".join(filter(None, (self.reason, self.remedy)))


def passed(name: str, words: str) -> AgentCheck:
    """Say that something is as it should be."""
    return AgentCheck(name, ok=True, words=words)


def unmet(name: str, words: str, remedy: str, state: State = "ready") -> AgentCheck:
    """Say that something is not, and what the agent is because of it."""
    return AgentCheck(name, ok=False, words=words, remedy=remedy, state=state)


def login_needed(name: str) -> AgentCheck:
    """Say that an agent of this name has to be logged in."""
    remedy = wording.LOG_IN.format(agent=name)
    return unmet("login", wording.NOT_LOGGED_IN, remedy, "login_needed")
