"""Tests of signed webhooks, and of catching up on missed ones."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator

import pytest

from app.errors import DeliveryRefused, PostDelayed, StoreUnavailable
from app.model.inbound import Delivery
from app.services.common.webhooks import (
    CatchUp,
    DeliveryStale,
    read_pages,
    verify_signature,
    verify_time,
)
from tests.support.clock import START, HastyClock, ManualClock

BODY = b'{"action": "created"}'


def signed(secret: bytes) -> str:
    return hmac.new(secret, BODY, hashlib.sha256).hexdigest()


@pytest.mark.parametrize("secret", [b"new", b"old"])
def test_each_secret_of_a_rotation_is_valid_and_equal_bytes_are_recognised(secret: bytes) -> None:
    found = verify_signature(BODY, signed(secret).encode(), [b"new", b"old"], "A_SECRET")

    assert found == signed(b"new")


@pytest.mark.parametrize("given", [b"", b"\xff", signed(b"other").encode()])
def test_any_other_signature_is_refused_with_the_setting_to_check(given: bytes) -> None:
    with pytest.raises(DeliveryRefused, match="check A_SECRET"):
        verify_signature(BODY, given, [b"new", b"old"], "A_SECRET")


@pytest.mark.parametrize("seconds", [-60.0, 0.0, 60.0])
def test_a_recent_request_is_accepted(seconds: float) -> None:
    verify_time(1000.0, 1000.0 + seconds, window=60.0)


@pytest.mark.parametrize("seconds", [-60.1, 60.1])
def test_an_old_or_early_request_is_refused(seconds: float) -> None:
    with pytest.raises(DeliveryStale):
        verify_time(1000.0, 1000.0 + seconds, window=60.0)


pytestmark = pytest.mark.anyio

MISSED = Delivery("echo:demo", "d1", None, {}, b"{}", START)


class Platform:
    """Has one missed delivery, and keeps from when on it was asked for those."""

    def __init__(self) -> None:
        self.since: list[float] = []
        self.error: PostDelayed | None = None

    async def find(self, since: float) -> AsyncGenerator[Delivery]:
        self.since.append(since)
        yield MISSED
        if self.error is not None:
            raise self.error


class Inbox:
    """Takes deliveries, after some failures."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.taken: list[Delivery] = []

    async def take(self, delivery: Delivery) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.taken.append(delivery)


async def test_the_first_run_looks_back_to_the_bound_and_later_ones_behind_the_last() -> None:
    platform, inbox, clock = Platform(), Inbox(), ManualClock()
    catch_up = CatchUp("echo:demo", clock, reach=1000.0, overlap=60.0)

    await catch_up.run(platform.find, inbox.take)
    await clock.advance(300.0)
    await catch_up.run(platform.find, inbox.take)
    await clock.advance(5000.0)
    await catch_up.run(platform.find, inbox.take)

    assert platform.since == [START - 1000.0, START - 60.0, START + 5300.0 - 1000.0]
    assert inbox.taken == [MISSED] * 3


async def test_a_caller_that_knows_the_gap_gives_its_start() -> None:
    platform, inbox, clock = Platform(), Inbox(), ManualClock()
    catch_up = CatchUp("echo:demo", clock, reach=1000.0, overlap=60.0)

    await catch_up.run(platform.find, inbox.take, last=START - 100.0)

    assert platform.since == [START - 160.0]


async def test_after_a_run_that_failed_the_next_one_looks_as_far_back() -> None:
    platform, inbox, clock = Platform(), Inbox(), ManualClock()
    catch_up = CatchUp("echo:demo", clock, reach=1000.0, overlap=60.0)
    platform.error = PostDelayed("down")

    with pytest.raises(PostDelayed):
        await catch_up.run(platform.find, inbox.take)
    platform.error = None
    await clock.advance(10.0)
    await catch_up.run(platform.find, inbox.take)

    assert platform.since == [START - 1000.0, START + 10.0 - 1000.0]


async def test_a_delivery_waits_for_a_store_that_cannot_write() -> None:
    inbox = Inbox(StoreUnavailable("locked"))
    catch_up = CatchUp("echo:demo", HastyClock(), reach=1000.0, overlap=60.0)

    await catch_up.run(Platform().find, inbox.take)

    assert inbox.taken == [MISSED]


async def test_pages_are_read_to_the_end_or_to_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    async def read(cursor: str | None) -> tuple[list[int], str | None]:
        page = int(cursor or 0)
        return [2 * page, 2 * page + 1], str(page + 1) if page < 2 else None

    whole = [item async for item in read_pages(read, pages=3, what="a list")]
    assert (whole, caplog.messages) == ([0, 1, 2, 3, 4, 5], [])

    with caplog.at_level(logging.WARNING):
        cut = [item async for item in read_pages(read, pages=2, what="a list")]
    assert (cut, caplog.messages) == ([0, 1, 2, 3], ["read only the first 2 pages of a list"])
