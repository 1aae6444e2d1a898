"""Reads the commands `review`, `panel` and `race`: which agents, and what they are asked; pure.

Words that name no agent of this bridge are no command: "review this" is for the agent itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Act = Literal["review", "panel", "race"]
MOST_AGENTS = 8
"""Agents that one command may name: more answers than people read."""

_REVIEW = re.compile(r"review\s+@?(\S[^\n:]*)", re.IGNORECASE)
_SEVERAL = re.compile(r"(panel|race)\s+(\S[^\n:]*):\s*(\S.*)", re.IGNORECASE | re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:,\s*(?:and\s+)?|\s+and\s+|\s|$)\s*@?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants several agents to do."""

    act: Act
    agents: tuple[str, ...]
    """Their ids, in the order in which they were named."""
    words: str = ""
    """The question or the task."""


def read(line: str, called: Mapping[str, str]) -> Wish | None:
    """Read a message; None if it is words for an agent. `called` are ids by name, in lower case."""
    if (review := _REVIEW.fullmatch(line)) is not None:
        agents = _read_agents(review[1], called)
        return Wish("review", agents) if len(agents) == 1 else None
    several = _SEVERAL.fullmatch(line)
    agents = () if several is None else _read_agents(several[2], called)
    if several is None or not 2 <= len(agents) <= MOST_AGENTS:
        return None
    act: Act = "panel" if several[1].lower() == "panel" else "race"
    return Wish(act, agents, several[3].rstrip())


def _read_agents(text: str, called: Mapping[str, str]) -> tuple[str, ...]:
    """Read names one after another, the longest first; nothing if there are other words."""
    found: list[str] = []
    rest = text.removeprefix("@").rstrip()
    while rest:
        for name in sorted(called, key=len, reverse=True):
            after = _BETWEEN.match(rest[len(name) :])
            if rest[: len(name)].casefold() == name and after is not None:
                found.append(called[name])
                rest = rest[len(name) + after.end() :]
                break
        else:
            return ()
    return tuple(dict.fromkeys(found))
