"""An agent at work at the desk, whose tools a test uses in its name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from app.errors import BridgeError
from app.model.ports import AgentListener
from app.model.updates import TextUpdate
from tests.support.desk import Desk
from tests.support.memory import heard

Call = Callable[..., Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class AtWork:
    """One turn that lasts until the test lets it end."""

    desk: Desk
    session: int
    turn: int
    go: asyncio.Event

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Use a tool; what it refuses is the `error`."""
        try:
            return {**await self.desk.toolbox.call(self.session, tool, arguments)}
        except BridgeError as error:
            return {"error": str(error)}

    async def end(self, state: str = "done") -> None:
        """Let the turn end."""
        self.go.set()
        await self.desk.reached(self.turn, state)


@asynccontextmanager
async def at_work(
    desk: Desk, text: str = "go", place: str = "t1", agent: str = "demo"
) -> AsyncIterator[AtWork]:
    """Have an agent work on a message while the test uses its tools."""
    go = hold(desk, agent)
    begun = await desk.hear(replace(heard(text, place), mentions=(agent,)), f"web:{agent}")
    ref = begun.turns[0]
    await desk.reached(ref.turn, "prompted")
    yield AtWork(desk, ref.session, ref.turn, go)
    go.set()
    await desk.until(lambda: desk.turn(ref.turn).state in {"done", "cancelled", "queued", "parked"})


@asynccontextmanager
async def helping(
    desk: Desk, caller: AtWork, agent: str = "codex", task: str = "help"
) -> AsyncIterator[AtWork]:
    """Have another agent work on what the first one asked of it."""
    go = hold(desk, agent)
    made = await caller.call("agents_message", to=agent, text=task, mode="async")
    asked = desk.delegations.read(int(made["id"]))
    await desk.reached(asked.turn, "prompted")
    yield AtWork(desk, asked.session, asked.turn, go)
    go.set()
    await desk.reached(asked.turn, "done")


def hold(desk: Desk, agent: str) -> asyncio.Event:
    """Let the next turns of an agent last until the event is set."""
    go = asyncio.Event()

    async def work(listener: AgentListener) -> None:
        await go.wait()
        await listener.on_update(TextUpdate(f"{agent} is done."))

    desk.launcher.scripts[agent] = work
    return go
