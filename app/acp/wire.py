"""Frames JSON-RPC on the wire: one JSON text per line, with a size limit, and error replies.

Pure: bytes in, frames out, in chunks of any size. An incomplete frame never holds more than the
limit and one chunk.
"""

from __future__ import annotations

from typing import Any

from app.errors import BridgeError

Message = dict[str, Any]

MAX_FRAME_BYTES = 8 * 1024 * 1024  # the longest honest frame is a tool's output or an image


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
