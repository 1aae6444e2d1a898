"""Embeds a bridge for one prompt where none is running: the same runtime, without a port.

It runs only that prompt: turns and posts that an earlier run left wait for `serve`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from app.config import Configuration
from app.core.feed import Unfinished
from app.core.runtime import Runtime
from app.errors import NotFound
from app.main import Bridge, open_resources
from app.server import api
from app.server.login import OPERATOR, Visitor
from app.server.shapes import EntryOut, NewAnswer, NewSession, SessionTurn, TurnOut, UnfinishedOut
from app.services.web.adapter import WebAdapter

GRACE_SECONDS: Final = 1.0
"""For what still runs after the turn: no one waits for it."""
TERMINAL_PACE_SECONDS: Final = 0.0
"""Nothing is sent, and a progress timer would delay the end by two seconds."""
ROWS: Final = 200
"""Rows per read."""


@asynccontextmanager
async def embedded(configuration: Configuration, agent: str) -> AsyncIterator[Embedded]:
    """Start the parts for one agent, and close them afterwards.

    Raises:
        BridgeError: as `open_resources` does.
    """
    # Without the log lines that only a long-running bridge should write.
    level = configuration.settings.log_level
    quiet = {"log_level": "warning" if level == "info" else level, "grace_seconds": GRACE_SECONDS}
    settings = configuration.settings.model_copy(update=quiet)
    with open_resources(replace(configuration, settings=settings)) as base:
        own = base.registry.find(agent).id
        bridge = Bridge(base, [WebAdapter(own, pace=TERMINAL_PACE_SECONDS)])
        try:
            await bridge.start(resume=False)
            yield Embedded(bridge.runtime)
        finally:
            await bridge.stop()


class Embedded:
    """The calls that `ask` needs, on the parts that also serve the API."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def begin(self, new: NewSession) -> SessionTurn:
        """Say something to an agent."""
        return await api.begin_session(self._runtime, Visitor(OPERATOR), new)

    async def turn(self, session: int, turn: int) -> TurnOut:  # noqa: ARG002 - its number is enough
        """Read one turn of a session."""
        found = self._runtime.stores.turns.turn(turn)
        if found is None:
            raise NotFound("turn", turn)
        return TurnOut.of(found)

    async def transcript(self, session: int, *, after: int = 0) -> list[EntryOut]:
        """Read what happened after a row, in order."""
        found: list[EntryOut] = []
        while rows := await self._runtime.stores.transcript.read(session, after=after, limit=ROWS):
            found += [EntryOut.of(row) for row in rows]
            after = rows[-1].id
        return found

    async def answer(self, ask: int, answer: str, *, in_words: bool = False) -> None:
        """Answer an ask, with one of its options or in words."""
        given = NewAnswer(text=answer) if in_words else NewAnswer(option=answer)
        await api.answer_ask(self._runtime, Visitor(OPERATOR), ask, given)

    async def cancel(self, session: int) -> None:
        """Stop what runs in a session."""
        await api.cancel(self._runtime, session)

    async def follow(self, session: int) -> AsyncIterator[EntryOut | UnfinishedOut]:
        """Yield every row of a session, and all that follow."""
        async for item in self._runtime.feed.follow(session, after=0, idle=api.QUIET_SECONDS):
            if isinstance(item, Unfinished):
                yield UnfinishedOut(turn=item.turn, kind=item.kind, text=item.text)
            elif item is not None:
                yield EntryOut.of(item)
