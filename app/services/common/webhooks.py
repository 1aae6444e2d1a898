"""Verifies signed webhooks, and reads the paged lists of platforms."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from app.errors import DeliveryRefused
from app.model.inbound import Delivery

logger = logging.getLogger(__name__)


class DeliveryStale(DeliveryRefused):
    """A request with a valid signature that was not sent just now: repeated or replayed.

    It is acknowledged: a platform that repeats what fails would only repeat it again.
    """

    def __init__(self, reason: str, sent_at: float | None = None) -> None:
        super().__init__(reason, status=200)
        self.sent_at = sent_at
        """When it was sent, if it says so."""


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
        raise DeliveryStale("the timestamp is not recent", sent_at)


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
"""Stores a delivery."""
