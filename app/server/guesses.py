"""Rate-limits guesses of the admin token and of log-in links, by source address.

Only wrong guesses count, and only against the address that made them: the right token from another
address always works at once, however many guesses are made.
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
"""Wrong guesses that it may make after that; too few to find a long random text."""
BURST_OF_ALL: Final = 200
PER_SECOND_OF_ALL: Final = 20.0
"""The limit for all addresses together, for attackers with many."""
ADDRESSES: Final = 1024
"""Addresses that are remembered; the one whose last guess is oldest is forgotten first."""


class TooManyGuesses(HTTPException):
    """An address made too many wrong guesses."""

    def __init__(self) -> None:
        super().__init__(429, "too many wrong tokens from this address; wait a second")


@dataclass(slots=True)
class _Bucket:
    """Guesses that are left; they refill over time."""

    most: float
    per_second: float
    left: float
    at: float

    def fill(self, now: float) -> None:
        self.left = min(self.most, self.left + (now - self.at) * self.per_second)
        self.at = now

    def take(self) -> None:
        self.left = max(0.0, self.left - 1)


class Guesses:
    """Counts wrong guesses."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._all = _Bucket(BURST_OF_ALL, PER_SECOND_OF_ALL, BURST_OF_ALL, now())
        self._by_address: OrderedDict[str, _Bucket] = OrderedDict()

    def check(self, peer: str) -> None:
        """Refuse an address that made too many wrong guesses.

        Raises:
            TooManyGuesses: it did.
        """
        bucket = self._by_address.get(_address(peer))
        if bucket is None:
            return
        now = self._now()
        bucket.fill(now)
        self._all.fill(now)
        if bucket.left < 1 or self._all.left < 1:
            raise TooManyGuesses

    def count(self, peer: str) -> None:
        """Count a wrong guess."""
        address, now = _address(peer), self._now()
        bucket = self._by_address.get(address)
        if bucket is None or now - bucket.at > BURST / PER_SECOND:
            bucket = self._by_address[address] = _Bucket(BURST, PER_SECOND, BURST, now)
            logger.warning("wrong admin token or log-in link from %s", address)
        self._by_address.move_to_end(address)
        if len(self._by_address) > ADDRESSES:
            self._by_address.popitem(last=False)
        for each in (bucket, self._all):
            each.fill(now)
            each.take()


def _address(peer: str) -> str:
    """Name the owner of an address: with IPv6 one customer has a whole network."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return "an unknown address"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), 64), strict=False))
    return str(address)
