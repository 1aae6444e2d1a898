"""Tracks the sessions an agent works in, and when Linear last heard from it there.

Linear calls a session stale after half an hour of silence. An open ask does not count as silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.services.linear.render import Shown

SILENCE_SECONDS: Final = 20 * 60.0
"""Silence after which a heartbeat is due: a few more tries fit into Linear's half hour."""
SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0
"""Pauses between progress updates: short at first, then longer, so that two hours of work cost
some sixty calls."""


@dataclass(slots=True)
class Work:
    """One turn, and how much of it Linear shows."""

    began: float
    shown: Shown = field(default_factory=Shown)
    due: float = 0.0
    """When its progress may be shown next."""

    def note_shown(self, now: float) -> None:
        """Note that progress was shown; the longer the turn takes, the later the next update."""
        pause = min(max((now - self.began) / 10, SHORTEST_SECONDS), LONGEST_SECONDS)
        self.due = now + pause


@dataclass(slots=True)
class Conversation:
    """One agent session."""

    spoke: float
    turns: dict[str, Work] = field(default_factory=dict)
    asks: set[str] = field(default_factory=set)
    accompanied: bool = False
    """Whether it is about work that goes on elsewhere."""
    line: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the agent speaks, so that no heartbeat follows its last message."""


class Presence:
    """All sessions with a running turn or an open ask."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def at(self, session: str, now: float) -> Conversation:
        """Return what is known of a session."""
        return self._conversations.setdefault(session, Conversation(now))

    def spoke(self, session: str, now: float) -> None:
        """Note that Linear heard from the agent."""
        if (known := self._conversations.get(session)) is not None:
            known.spoke = now

    def is_busy(self, session: str) -> bool:
        """Tell whether a turn is running there."""
        known = self._conversations.get(session)
        return known is not None and bool(known.turns)

    def is_watched(self, session: str) -> bool:
        """Tell whether heartbeats are sent there."""
        known = self._conversations.get(session)
        return known is not None and (bool(known.turns) or known.accompanied)

    def accompany(self, session: str, now: float) -> None:
        """Note that a session is about work that goes on elsewhere."""
        known = self.at(session, now)
        known.accompanied, known.spoke = True, now

    def part(self, session: str) -> None:
        """Note that the work elsewhere has ended."""
        if (known := self._conversations.get(session)) is not None:
            known.accompanied = False

    def leave(self, session: str, marker: str) -> None:
        """Forget a post that will not change again."""
        known = self._conversations.get(session)
        if known is None:
            return
        known.turns.pop(marker, None)
        known.asks.discard(marker)
        if not known.turns and not known.asks and not known.accompanied:
            del self._conversations[session]

    def silent(self, now: float) -> Sequence[str]:
        """List the sessions that need a heartbeat."""
        return [
            session
            for session, known in self._conversations.items()
            if (known.turns or known.accompanied)
            and not known.asks
            and now - known.spoke >= SILENCE_SECONDS
        ]
