"""Calls within Slack's limits."""

from __future__ import annotations

import pytest

from app.errors import PostDelayed
from app.services.slack.api import SHARES, Limits
from sim.slack.api import TIERS
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def limits(clock: ManualClock) -> Limits:
    return Limits(clock)


def test_progress_leaves_room_for_answers(limits: Limits) -> None:
    for _ in range(10):
        limits.take("chat.update", yields=True)

    with pytest.raises(PostDelayed) as delayed:
        limits.take("chat.update", yields=True)

    assert delayed.value.retry_after == pytest.approx(60 / 25)
    for _ in range(40):
        limits.take("chat.update", yields=False)
    limits.take("chat.appendStream", yields=True)


@pytest.mark.parametrize("method", SHARES)
async def test_progress_goes_on_at_an_even_rate_below_the_limit_of_slack(
    method: str, clock: ManualClock, limits: Limits
) -> None:
    counts, pauses = 0, []
    while clock.monotonic() < 60:
        try:
            limits.take(method, yields=True)
            counts += 1
        except PostDelayed as error:
            pauses.append(error.retry_after or 0.0)
            await clock.advance(pauses[-1])

    assert SHARES[method].per_minute <= counts <= TIERS[method]
    assert 0 < max(pauses) <= 60 / SHARES[method].per_minute + 0.001


async def test_progress_waits_a_minute_at_most_after_many_answers(
    clock: ManualClock, limits: Limits
) -> None:
    for _ in range(200):
        limits.take("chat.update", yields=False)
    await clock.advance(60)

    limits.take("chat.update", yields=True)


async def test_a_method_that_slack_closes_is_not_called_before_its_time(
    clock: ManualClock, limits: Limits
) -> None:
    limits.close("chat.postMessage", 30)

    with pytest.raises(PostDelayed) as delayed:
        limits.take("chat.postMessage", yields=False)

    assert delayed.value.retry_after == 30.0
    limits.take("chat.update", yields=False)
    await clock.advance(30)
    limits.take("chat.postMessage", yields=False)
