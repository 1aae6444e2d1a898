"""Frames JSON-RPC on the wire: one JSON text per line, with a size limit, and error replies.

Pure: bytes in, frames out, in chunks of any size. An incomplete frame never holds more than the
limit and one chunk. No decoded text has a character that a database or an encoding refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from app.errors import BridgeError

Message = dict[str, Any]

MAX_FRAME_BYTES = 8 * 1024 * 1024  # the longest honest frame is a tool's output or an image

_NUL, _REPLACED = rb"\u0000", rb"\ufffd"
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"%s(?!%s)|(?<!%s)%s" % (_HIGH, _LOW, _HIGH, _LOW))
# What serialisers write for numbers that JSON does not have, or that no double holds.
_NUMBER = re.compile(
    rb"(?<=[:,\[])\s*-?(?:NaN|Infinity|\d{300,}|\d+(?:\.\d+)?[eE]\+?\d{3,})(?=\s*[,\]}])"
)


class FrameTooLong(BridgeError):
    """A frame, or the beginning of one, exceeds the limit."""

    def __init__(self) -> None:
        super().__init__(f"a message of more than {MAX_FRAME_BYTES // 2**20} MiB")


class Framing:
    """Takes bytes as they come and returns frames as soon as they are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """Take a block and return the frames that it completes.

        Raises:
            FrameTooLong: one of them, or the one that has begun, is too long.
        """
        lines = block.split(b"\n")
        tail = lines.pop()
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += tail
        if len(self._rest) > MAX_FRAME_BYTES or (lines and len(lines[0]) > MAX_FRAME_BYTES):
            raise FrameTooLong
        return lines

    def finish(self) -> list[bytes]:
        """Return what came after the last line break, at the end of the stream."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest] if rest else []


def decode(frame: bytes) -> Any:
    """Read a frame; refused characters become U+FFFD, and numbers that are none become null.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
    """
    if _NUL in frame:
        frame = _replace(frame, lambda text: text.replace(_NUL, _REPLACED))
    try:
        return orjson.loads(frame)
    except orjson.JSONDecodeError:
        repaired = _replace(frame, lambda text: _HALF.sub(rb"\\ufffd", text))
        return orjson.loads(_NUMBER.sub(b"null", repaired))


def _replace(frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change escapes; a backslash that is itself escaped begins none, and is hidden meanwhile."""
    if b"\0" in frame:
        return frame  # not JSON
    return change(frame.replace(rb"\\", b"\0")).replace(b"\0", rb"\\")


def plain_answer(message: Message) -> Message:
    """Leave details out of an error: the SDK puts the agent's whole input into them."""
    error = message.get("error")
    if not isinstance(error, dict):
        return message
    return {**message, "error": {"code": error.get("code"), "message": error.get("message")}}


def plain_error(error: object) -> Message:
    """Give an agent's error the shape that the SDK expects."""
    facts: Message = error if isinstance(error, dict) else {"message": error}
    code, message = facts.get("code"), facts.get("message")
    return {
        "code": code if type(code) is int else -32603,
        "message": message if isinstance(message, str) else "an error without a message",
        "data": facts.get("data"),
    }
