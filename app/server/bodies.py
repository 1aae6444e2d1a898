"""Reads the bodies of webhooks, within a bound of time, number and memory for all together.

Who sent a body is known only once it was read, so strangers can send some. When there are too many,
the one that has been under way longest gives way: what a platform sends arrives at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from app.errors import DeliveryRefused

BODY_BYTES: Final = 25 * 1024 * 1024
"""The largest limit that a platform sets for its own deliveries."""
BODY_SECONDS: Final = 10.0
"""How long a sender may take for a body: platforms give up after this time."""
BODIES: Final = 64
"""Bodies that may be under way: more than a burst of a platform, which takes milliseconds each."""
BODIES_BYTES: Final = 64 * 1024 * 1024
"""What they may hold together: two of the largest, and a small machine has room for it."""

Message = MutableMapping[str, Any]


class Bodies:
    """Reads bodies, and knows which are under way."""

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Timeout, int] = {}
        """The size of each so far, by its bound of time, the oldest first."""

    async def read(
        self, headers: Mapping[bytes, bytes], receive: Callable[[], Awaitable[Message]]
    ) -> bytes:
        """Read a body up to the cap.

        Raises:
            DeliveryRefused: it is too large or incomplete.
            TimeoutError: it did not arrive in time, or it gave way to others.
        """
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > BODY_BYTES:
            raise DeliveryRefused("the body is too large", status=413)
        async with asyncio.timeout(BODY_SECONDS) as bound:
            pieces: list[bytes] = []
            self._under_way[bound] = 0
            try:
                self._grow(bound, 0)
                while True:
                    message = await receive()
                    pieces.append(_piece(message))
                    if not message.get("more_body"):
                        return b"".join(pieces)
                    self._grow(bound, len(pieces[-1]))
            finally:
                self._under_way.pop(bound, None)

    def _grow(self, bound: asyncio.Timeout, size: int) -> None:
        """Count a piece of a body, and let others give way for it."""
        if bound not in self._under_way:
            return
        self._under_way[bound] += size
        if self._under_way[bound] > BODY_BYTES:
            raise DeliveryRefused("the body is too large", status=413)
        while len(self._under_way) > BODIES or sum(self._under_way.values()) > BODIES_BYTES:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())


def _piece(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise DeliveryRefused("the body is incomplete", status=400)
    piece: bytes = message.get("body", b"")
    return piece
