"""Numbers the lines between a bridge and a relay, so that a cut connection loses and doubles none.

Each end keeps what it sent until the other one has confirmed it. After a cut each tells the number
of the last line that it received, and gets what came after that. Lines are binary frames, a number
and the bytes as they are; everything else is a text frame with a JSON object.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Final

PROTOCOL: Final = "agent-bridge-relay"
"""The subprotocol: an end that does not choose it gets ACP without numbers."""
PLAIN_PROTOCOL: Final = "acp"
"""Offered first, since some servers choose the first one whatever it is."""
KEPT_BYTES: Final = 16 * 1024 * 1024
"""How much may be unconfirmed before the end that sends waits: two of the longest messages."""
CONFIRM_BYTES: Final = 256 * 1024
CONFIRM_LINES: Final = 32
"""After so much a line is confirmed: seldom enough to cost nothing, far below what may be kept."""


class NumberedLines:
    """One end's view of both directions."""

    def __init__(self) -> None:
        self.received = 0
        """The number of the last line that arrived."""
        self.kept_bytes = 0
        """How much was sent and is not confirmed."""
        self._sent = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._owed_bytes = 0
        self._owed_lines = 0

    def number(self, line: bytes) -> bytes:
        """Return the frame of a line, and keep it."""
        self._sent += 1
        frame = b"%d %s" % (self._sent, line)
        self._kept.append((self._sent, frame))
        self.kept_bytes += len(frame)
        return frame

    def take(self, frame: bytes) -> bytes | None:
        """Return the line of a frame; None if it is known already.

        Raises:
            ValueError: it has no number, or lines before it are missing.
        """
        digits, _, line = frame.partition(b" ")
        number = int(digits)
        if number <= self.received:
            return None
        if number != self.received + 1:
            raise ValueError("lines are missing")
        self.received = number
        self._owed_bytes += len(frame)
        self._owed_lines += 1
        return line

    def confirm(self) -> str | None:
        """Return the frame that confirms what arrived, if it is time for one."""
        if self._owed_bytes < CONFIRM_BYTES and self._owed_lines < CONFIRM_LINES:
            return None
        self._owed_bytes = self._owed_lines = 0
        return control(received=self.received)

    def drop(self, received: int) -> None:
        """Forget what the other end has confirmed."""
        while self._kept and self._kept[0][0] <= received:
            self.kept_bytes -= len(self._kept.popleft()[1])

    def missing(self, received: int) -> list[bytes]:
        """Return the frames that the other end has not received."""
        self.drop(received)
        return [frame for _, frame in self._kept]


def control(**facts: Any) -> str:
    """Write a text frame."""
    return json.dumps(facts)


def read_control(text: str) -> dict[str, Any]:
    """Read a text frame.

    Raises:
        ValueError: it is not a JSON object.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - as for what is not JSON at all
    return found
