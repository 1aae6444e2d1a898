"""Writes streams of server-sent events, for the API and the page.

A stream ends when the store cannot be read: its reader connects again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from fastapi.responses import StreamingResponse

from app.errors import StoreUnavailable

QUIET: Final = b": quiet\n\n"
"""Keeps a connection alive."""


def event(name: str, data: bytes, *, number: int | None = None) -> bytes:
    """Write one event; a reader that connects again names the last number it saw."""
    begin = f"id: {number}\n" if number is not None else ""
    return f"{begin}event: {name}\ndata: ".encode() + data + b"\n\n"


def stream(
    events: AsyncIterator[bytes], headers: Mapping[str, str] = MappingProxyType({})
) -> StreamingResponse:
    """Answer with events; no proxy holds them back."""

    async def until_away() -> AsyncIterator[bytes]:
        with suppress(StoreUnavailable):
            async for each in events:
                yield each

    return StreamingResponse(
        until_away(),
        media_type="text/event-stream",
        headers={**headers, "Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
