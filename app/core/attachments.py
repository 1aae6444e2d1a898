"""Sees to it that a file is there before it is laid beside a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.ports import Adapter, FileSource
from app.core.types import File, Session


class Attachments:
    """Files that may still have to be fetched from where they were attached."""

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters

    async def fetched(self, session: Session, files: Sequence[File]) -> Sequence[File]:
        """Bring files into the uploads that are not there yet."""
        source = self._adapters.get(session.key.adapter)
        if not isinstance(source, FileSource):
            return files
        return [await source.fetch(file) for file in files]
