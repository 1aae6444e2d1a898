"""Adapters wait for their own identity, and a bounded time for the others'."""

from __future__ import annotations

import asyncio

import pytest

from app.services.common import identity
from app.services.common.identity import Roster

pytestmark = pytest.mark.anyio


async def test_waiting_ends_as_soon_as_all_are_known() -> None:
    roster: Roster[str] = Roster(("claude", "codex"))
    waiting = asyncio.ensure_future(roster.wait_for_all())

    roster.add("claude", "U1")
    await asyncio.sleep(0)
    assert not waiting.done()

    roster.add("codex", "U2")
    async with asyncio.timeout(5):
        await waiting
    assert roster.known == {"claude": "U1", "codex": "U2"}


async def test_an_agent_that_stays_unknown_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(identity, "OTHERS_SECONDS", 0.01)
    roster: Roster[str] = Roster(("claude", "codex"))
    roster.add("claude", "U1")

    async with asyncio.timeout(5):
        assert await roster.wait("claude") == "U1"
        await roster.wait_for_all()
