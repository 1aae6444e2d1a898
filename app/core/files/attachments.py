"""Sees to it that a file is there before it is laid beside a workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from app.core.adapters import Adapter, FileSource
from app.core.types import File, Session

AT_ONCE = 4
"""Files that are fetched at once: people wait for them, and a platform is asked gently."""


class Attachments:
    """Files that may still have to be fetched from where they were attached."""

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters

    async def fetched(self, session: Session, files: Sequence[File]) -> Sequence[File]:
        """Bring files into the uploads that are not there yet."""
        source = self._adapters.get(session.key.adapter)
        if not isinstance(source, FileSource):
            return files
        few = asyncio.Semaphore(AT_ONCE)

        async def fetch(file: File) -> File:
            async with few:
                return await source.fetch(file)

        return await asyncio.gather(*map(fetch, dict.fromkeys(files)))
