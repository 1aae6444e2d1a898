"""Calls within Slack's limits."""

from __future__ import annotations

import pytest

from app.errors import PostDelayed
from app.services.slack.limits import Limits
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


def test_progress_leaves_room_for_answers_and_goes_on_a_minute_later() -> None:
    clock = ManualClock()
    limits = Limits(clock)
    for _ in range(35):
        limits.take("chat.update", yields=True)

    with pytest.raises(PostDelayed) as delayed:
        limits.take("chat.update", yields=True)

    assert delayed.value.retry_after == 60.0
    for _ in range(15):
        limits.take("chat.update", yields=False)
    limits.take("chat.appendStream", yields=True)


async def test_what_was_called_a_minute_ago_does_not_count() -> None:
    clock = ManualClock()
    limits = Limits(clock)
    for _ in range(35):
        limits.take("chat.update", yields=True)
    await clock.advance(60)

    limits.take("chat.update", yields=True)


async def test_a_method_that_slack_closes_is_not_called_before_its_time() -> None:
    clock = ManualClock()
    limits = Limits(clock)
    limits.close("chat.postMessage", 30)

    with pytest.raises(PostDelayed) as delayed:
        limits.take("chat.postMessage", yields=False)

    assert delayed.value.retry_after == 30.0
    limits.take("chat.update", yields=False)
    await clock.advance(30)
    limits.take("chat.postMessage", yields=False)
