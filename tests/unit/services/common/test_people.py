"""Tests of how our agents and the people on a platform are known."""

from __future__ import annotations

import asyncio

import pytest

from app.errors import PostDelayed, PostError
from app.services.common import people
from app.services.common.people import Members, PlatformAgents, Profile
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def test_waiting_ends_as_soon_as_all_are_known() -> None:
    roster: PlatformAgents[str] = PlatformAgents(("claude", "codex"))
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
    monkeypatch.setattr(people, "OTHERS_SECONDS", 0.01)
    roster: PlatformAgents[str] = PlatformAgents(("claude", "codex"))
    roster.add("claude", "U1")

    async with asyncio.timeout(5):
        assert await roster.wait("claude") == "U1"
        await roster.wait_for_all()


class Platform:
    """Answers look-ups, unless it is down, and keeps them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusal: str | None = None
        self.error: PostError | None = None

    async def look_up(self, user: str) -> Profile:
        self.asked.append(user)
        if self.error is not None:
            raise self.error
        return Profile(self.refusal, user.title())


async def test_an_answer_is_cached_and_then_forgotten() -> None:
    platform, clock = Platform(), ManualClock()
    found = Members(platform.look_up, clock, seconds=60.0)

    assert await found.find("ann") == await found.find("ann") == Profile(None, "Ann")
    assert platform.asked == ["ann"]

    await clock.advance(60.0)
    platform.refusal = "you are a guest"
    assert await found.find("ann") == Profile("you are a guest", "Ann")


async def test_an_old_answer_counts_during_an_outage_for_a_bounded_time() -> None:
    platform, clock = Platform(), ManualClock()
    found = Members(platform.look_up, clock, seconds=60.0, outage_seconds=600.0)
    await found.find("ann")
    platform.error = PostDelayed("down")

    await clock.advance(659.0)
    assert await found.find("ann") == Profile(None, "Ann")
    await clock.advance(1.0)
    with pytest.raises(PostDelayed):
        await found.find("ann")


async def test_without_an_outage_bound_an_old_answer_does_not_count() -> None:
    platform, clock = Platform(), ManualClock()
    found = Members(platform.look_up, clock, seconds=60.0)
    await found.find("ann")
    platform.error = PostDelayed("down")

    await clock.advance(60.0)
    with pytest.raises(PostDelayed):
        await found.find("ann")


async def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "CACHED_MEMBERS", 2)
    platform = Platform()
    found = Members(platform.look_up, ManualClock(), seconds=60.0)

    for user in ("ann", "bob", "cleo", "ann"):
        await found.find(user)

    assert platform.asked == ["ann", "bob", "cleo", "ann"]
