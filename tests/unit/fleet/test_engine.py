"""The engine of a fleet: what it serves at once, refuses, and passes on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from app.clock import SystemClock
from app.core.turns.turn_context import TurnContext
from app.fleet.engine import FleetTurnEngine, FleetWorker, Take, _Service
from app.model.keys import SessionKey
from app.model.types import Turn, TurnState
from app.signals import ALONE
from app.store.members import Claim

pytestmark = pytest.mark.anyio

TURN = Turn(1, 7, SessionKey("web", "t1", "demo"), TurnState.QUEUED)
OTHER = 8


class LateTurns:
    """A session whose turn is committed after the engine has looked for it."""

    def __init__(self) -> None:
        self.looks = 0
        self.is_claimed = False

    def next_turn(self, _: int) -> Turn | None:
        self.looks += 1
        return None if self.looks == 1 or self.is_claimed else TURN


class Worker:
    """Hears of no session."""

    async def run(self, take: Take) -> None:
        """Do nothing."""


class Claims:
    """Answers every claim, and notes what it is asked."""

    def __init__(self, turns: LateTurns, answer: Literal["elsewhere", "full"]) -> None:
        self._turns = turns
        self._answer: Literal["elsewhere", "full"] = answer
        self.free: list[str] = []
        self.claimed = asyncio.Event()
        self.passed_on: list[int] = []

    async def claim(self, *_: object, **__: object) -> Claim:
        self._turns.is_claimed = True
        self.claimed.set()
        return Claim(self._answer)

    async def pass_on(self, session: int, _load: object) -> bool:
        self.passed_on.append(session)
        return bool(self.free)


async def start(turns: LateTurns, claims: Claims, *, max_turns: int) -> FleetTurnEngine:
    context = SimpleNamespace(
        stores=SimpleNamespace(turns=turns),
        agents={},
        clock=SystemClock(),
        signals=ALONE,
        feed=SimpleNamespace(notify=lambda _: None),
        live=SimpleNamespace(),
    )
    engine = FleetTurnEngine(
        cast("TurnContext", context),
        cast("Any", claims),
        max_turns=max_turns,
        total=None,
        worker=cast("FleetWorker", Worker()),
    )
    await engine.start()
    return engine


async def test_a_turn_that_comes_after_the_last_look_is_claimed_without_a_sweep() -> None:
    turns = LateTurns()
    claims = Claims(turns, "elsewhere")
    engine = await start(turns, claims, max_turns=1)

    engine.submit(TURN.session)

    async with asyncio.timeout(5):
        await claims.claimed.wait()
    await engine.drain(grace=0)


async def test_a_session_that_as_many_turns_keep_waiting_as_may_run_is_refused() -> None:
    turns = LateTurns()
    turns.looks = 1
    engine = await start(turns, Claims(turns, "full"), max_turns=1)

    async with asyncio.timeout(5):
        assert not await engine.take(TURN.session)
    await engine.drain(grace=0)


async def test_a_member_without_room_passes_a_session_on_to_one_that_has_some() -> None:
    turns = LateTurns()
    claims = Claims(turns, "full")
    engine = await start(turns, claims, max_turns=0)

    assert not await engine.take(TURN.session)
    claims.free.append("bob")
    assert await engine.take(TURN.session)

    assert claims.passed_on == [TURN.session, TURN.session]
    assert not claims.claimed.is_set()
    await engine.drain(grace=0)


async def test_a_session_that_no_member_had_room_for_is_claimed_where_a_slot_gets_free() -> None:
    turns = LateTurns()
    turns.looks = 1
    claims = Claims(turns, "elsewhere")
    engine = await start(turns, claims, max_turns=1)
    engine._served[OTHER] = _Service("served")
    assert not await engine.take(TURN.session)

    del engine._served[OTHER]
    engine._slots.on_room()

    async with asyncio.timeout(5):
        await claims.claimed.wait()
    await engine.drain(grace=0)
