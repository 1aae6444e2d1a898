"""Reads paged lists, up to a page limit."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

logger = logging.getLogger(__name__)

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
