"""Calls are retried for passing reasons only, with the pauses that were asked for."""

from __future__ import annotations

from itertools import islice

import pytest
from typing_extensions import override

from app.errors import PostDelayed
from app.retry import Retries, backoff
from tests.support.clock import HastyClock

pytestmark = pytest.mark.anyio


class Flaky:
    """Fails with some errors, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def attempt(call: Flaky, retries: Retries) -> str:
    """Call until it succeeds, or no pause is left."""
    while True:
        try:
            return await call()
        except PostDelayed as error:
            await retries.wait(error)


class Clock(HastyClock):
    """A clock that keeps every pause."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    @override
    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_a_call_is_retried_until_it_succeeds() -> None:
    clock, call = Clock(), Flaky(PostDelayed("busy"), PostDelayed("busy"))

    assert await attempt(call, Retries(clock, (1.0, 5.0, 15.0))) == "done"
    assert clock.pauses == [1.0, 5.0]


async def test_the_last_error_is_raised_when_no_pause_is_left() -> None:
    clock, call = Clock(), Flaky(PostDelayed("first"), PostDelayed("second"), PostDelayed("third"))

    with pytest.raises(PostDelayed, match="second"):
        await attempt(call, Retries(clock, (1.0,)))
    assert call.calls == 2


async def test_a_platform_sets_the_pause_itself() -> None:
    clock, call = Clock(), Flaky(PostDelayed("busy", retry_after=7.0))

    await attempt(call, Retries(clock, (1.0,)))

    assert clock.pauses == [7.0]


async def test_a_pause_over_the_limit_ends_the_retries() -> None:
    clock, call = Clock(), Flaky(PostDelayed("busy", retry_after=61.0))

    with pytest.raises(PostDelayed, match="busy"):
        await attempt(call, Retries(clock, (1.0,), longest=60.0))
    assert clock.pauses == []


def test_backoff_doubles_up_to_its_limit() -> None:
    assert list(islice(backoff(1.0, 5.0), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]
