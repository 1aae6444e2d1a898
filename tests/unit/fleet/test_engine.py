"""The engine of a fleet: a turn that comes at the last moment is served at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.clock import SystemClock
from app.core.turns.turn_context import TurnContext
from app.fleet.engine import FleetTurnEngine
from app.fleet.worker import FleetWorker, Hands
from app.model.keys import SessionKey
from app.model.members import Claim
from app.model.types import Turn, TurnState
from app.signals import ALONE

pytestmark = pytest.mark.anyio

TURN = Turn(1, 7, SessionKey("web", "t1", "demo"), TurnState.QUEUED)


class LateTurns:
    """A session whose turn is committed after the engine has looked for it."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_claimed = False

    def next_turn(self, _: int) -> Turn | None:
        self.looks += 1
        return None if self.looks == 1 or self.is_claimed else TURN


class Worker:
    """Fetches no job."""

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    async def run(self) -> None:
        await self._hands.employ(1)


async def test_a_turn_that_comes_after_the_last_look_is_claimed_without_a_sweep() -> None:
    turns, claimed = LateTurns(), asyncio.Event()

    class Jobs:
        async def employ(self, _: int) -> None:
            return

        async def claim(self, *_: object, **__: object) -> Claim:
            turns.is_claimed = True
            claimed.set()
            return Claim("elsewhere")

    context = SimpleNamespace(
        turns=turns, clock=SystemClock(), feed=SimpleNamespace(notify=lambda _: None)
    )
    engine = FleetTurnEngine(
        cast("TurnContext", context),
        cast("Any", Jobs()),
        max_turns=1,
        total=None,
        of_agent={},
        recruit=lambda hands: cast("FleetWorker", Worker(hands)),
        signals=ALONE,
    )
    await engine.start()
    await engine._tasks.settle(5)

    engine.submit(TURN.session)

    async with asyncio.timeout(5):
        await claimed.wait()
    await engine._tasks.close()
