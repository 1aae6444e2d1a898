"""Fetches attachments before they are placed next to a workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from app.core.adapters import Adapter
from app.model.types import File, Session

AT_ONCE = 4
"""Files fetched at once: people wait for them, and platforms limit requests."""


class Attachments:
    """Attachments that may still have to be fetched from their platform."""

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters

    async def fetched(self, session: Session, files: Sequence[File]) -> Sequence[File]:
        """Fetch the files that are not in the uploads yet."""
        source = self._adapters.get(session.key.adapter)
        if source is None:
            return files
        few = asyncio.Semaphore(AT_ONCE)

        async def fetch(file: File) -> File:
            async with few:
                return await source.fetch(file)

        return await asyncio.gather(*map(fetch, dict.fromkeys(files)))
