"""Agents at the desk that ask each other: what a turn of each does, and what its calls got."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.errors import AgentDied, BridgeError
from app.model.delegation import Delegation
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.updates import TextUpdate
from tests.support.desk import PATIENCE_SECONDS, Desk


@dataclass(slots=True)
class Asking:
    """An agent whose next turns make some calls, one after another."""

    desk: Desk
    agent: str = "demo"
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    stays: bool = False
    """Whether its turn goes on after the calls."""
    got: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.desk.launcher.scripts[self.agent] = self._work

    async def _work(self, listener: AgentListener) -> None:
        for tool, arguments in self.calls:
            try:
                found = await self.desk.call(self.agent, tool, **arguments)
            except BridgeError as error:
                found = {"error": str(error)}
            self.got.append(found)
            self.desk.stir()
        if self.stays:
            await asyncio.Event().wait()
        await listener.on_update(TextUpdate("that is all"))


@dataclass(slots=True)
class Working:
    """An agent that works until it is let go, and then answers."""

    desk: Desk
    agent: str = "codex"
    answer: str = "looks good"
    free: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.desk.launcher.scripts[self.agent] = self._work

    async def _work(self, listener: AgentListener) -> None:
        self.at_work.set()
        await self.free.wait()
        await listener.on_update(TextUpdate(self.answer))

    async def begun(self) -> None:
        """Wait until it works."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.at_work.wait()


async def die(_listener: AgentListener) -> None:
    """End as a process that crashed."""
    raise AgentDied("demo", status=1)


def has_asked(desk: Desk, place: str = "t1") -> bool:
    """Tell whether an agent in a place of people asked another one."""
    return bool(desk.delegations.begun_in(PlaceKey("web", place)))


def asked(desk: Desk, place: str = "t1") -> Delegation:
    """Read the last delegation of a place of people."""
    return desk.delegations.begun_in(PlaceKey("web", place))[-1]


def message(to: str = "codex", text: str = "look at it", **more: Any) -> tuple[str, dict[str, Any]]:
    """Make a call of agents_message."""
    return "agents_message", {"to": to, "text": text, **more}
