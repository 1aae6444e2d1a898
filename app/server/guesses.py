"""Rate-limits guesses of the admin token and of log-in links, by source address.

Only wrong guesses count, and only wrong ones are slowed down: the right token and a link that works
are accepted at once, however many guesses others make, also from the same address. What keeps a
guesser out is the length of both.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fastapi import HTTPException

logger = logging.getLogger(__name__)

BURST: Final = 20
"""Wrong guesses that an address may make at once: a script with an old token, and its retries."""
PER_SECOND: Final = 1.0
"""Wrong guesses that it may make after that: enough for a script that retries."""
ADDRESSES: Final = 1024
"""Addresses that are remembered; the one whose last guess is oldest is forgotten first."""


class TooManyGuesses(HTTPException):
    """An address made too many wrong guesses."""

    def __init__(self) -> None:
        super().__init__(429, "too many wrong tokens from this address; wait a second")


@dataclass(slots=True)
class _Bucket:
    """Guesses that an address has left; they refill over time."""

    left: float
    at: float

    def take(self, now: float) -> bool:
        """Take one guess; False if none is left."""
        self.left = min(BURST, self.left + (now - self.at) * PER_SECOND)
        self.at = now
        is_left = self.left >= 1
        self.left -= is_left
        return is_left


class Guesses:
    """Counts wrong guesses."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_address: OrderedDict[str, _Bucket] = OrderedDict()

    def count(self, peer: str) -> None:
        """Count a wrong guess.

        Raises:
            TooManyGuesses: its address made too many.
        """
        address, now = _address(peer), self._now()
        bucket = self._by_address.get(address)
        if bucket is None or now - bucket.at > BURST / PER_SECOND:
            bucket = self._by_address[address] = _Bucket(BURST, now)
            logger.warning("wrong admin token or log-in link from %s", address)
        self._by_address.move_to_end(address)
        if len(self._by_address) > ADDRESSES:
            self._by_address.popitem(last=False)
        if not bucket.take(now):
            raise TooManyGuesses


def _address(peer: str) -> str:
    """Name the owner of an address: with IPv6 one customer has a whole network."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return "an unknown address"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
