"""Verifies signed webhooks, and catches up on deliveries that were missed.

A service finds what it may have missed; `CatchUp` bounds how far back it looks and hands the
deliveries over. The intake recognises the ones that did arrive by their ids.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

from app.clock import Clock
from app.errors import DeliveryRefused
from app.model.inbound import Delivery
from app.retry import persist

logger = logging.getLogger(__name__)


class DeliveryStale(DeliveryRefused):
    """A request with a valid signature that was not sent just now: repeated or replayed.

    It is acknowledged: a platform that repeats what fails would only repeat it again.
    """


def verify_signature(body: bytes, given: bytes, secrets: Sequence[bytes], setting: str) -> str:
    """Check an HMAC-SHA256 in hexadecimal over the raw body.

    Returns the signature by the first secret, so that equal bytes are recognised after a rotation.

    Raises:
        DeliveryRefused: none of the secrets made this signature.
    """
    expected = [hmac.new(secret, body, hashlib.sha256).hexdigest() for secret in secrets]
    # All are compared, so that timing does not reveal which one matched.
    if not sum(hmac.compare_digest(each.encode(), given) for each in expected):
        raise DeliveryRefused(f"the signature is wrong: check {setting}")
    return expected[0]


def verify_time(sent_at: float, now: float, *, window: float) -> None:
    """Check that a request was sent just now.

    Raises:
        DeliveryStale: it was not.
    """
    if abs(now - sent_at) > window:
        raise DeliveryStale("the timestamp is not recent", status=200)


T = TypeVar("T")

ReadPage = Callable[[str | None], Awaitable[tuple[Iterable[T], str | None]]]
"""Reads the page at a cursor; returns its items and the next cursor."""


async def read_pages(read: ReadPage[T], *, pages: int, what: str) -> AsyncGenerator[T, None]:
    """Yield the items of a paged list, and log what is left out when it is too long."""
    cursor: str | None = None
    for _ in range(pages):
        items, cursor = await read(cursor)
        for item in items:
            yield item
        if not cursor:
            return
    logger.warning("read only the first %d pages of %s", pages, what)


Take = Callable[[Delivery], Awaitable[None]]
Find = Callable[[float], AsyncGenerator[Delivery, None]]


class CatchUp:
    """Hands over the deliveries that one adapter missed, run after run."""

    def __init__(self, adapter: str, clock: Clock, *, reach: float, overlap: float) -> None:
        """Look back `reach` seconds at most, and `overlap` seconds behind the previous run."""
        self._adapter = adapter
        self._clock = clock
        self._reach = reach
        self._overlap = overlap
        self._last = float("-inf")

    async def run(self, find: Find, take: Take, *, last: float | None = None) -> None:
        """Hand over what is found since the previous run, or since `last` if the caller knows.

        A run that fails counts as none: the next one looks as far back.
        """
        began = self._clock.now()
        since = max(began - self._reach, (self._last if last is None else last) - self._overlap)
        count = 0
        async with aclosing(find(since)) as found:
            async for delivery in found:
                await persist(self._clock, take, delivery)
                count += 1
        self._last = began
        if count:
            logger.info("%s caught up: %d deliveries", self._adapter, count)
