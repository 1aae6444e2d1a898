"""Encrypts what is stored elsewhere with a key that only the bridges have.

A part that is moved, exchanged or missing is noticed: each is bound to its file and its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from app.config.sealing import Sealer
from app.model.ports import Shelf

_PART_BYTES: Final = 4 * 1024**2
_SIZE_BYTES: Final = 4
_MORE_BYTES: Final = 64
"""More than sealing adds to a part."""


@dataclass(frozen=True, slots=True)
class SealedShelf:
    """A shelf on which every file is sealed."""

    shelf: Shelf
    sealer: Sealer

    async def put(self, name: str, file: Path) -> None:
        """Store a sealed copy of a file."""
        sealed = file.with_name(f"{file.name}.sealed")
        try:
            await asyncio.to_thread(_convert, file, sealed, lambda *both: self._seal(name, *both))
            await self.shelf.put(name, sealed)
        finally:
            await asyncio.to_thread(sealed.unlink, missing_ok=True)

    async def get(self, name: str, into: Path) -> bool:
        """Copy a stored file to a path, opened; False if there is none."""
        sealed = into.with_name(f"{into.name}.sealed")
        try:
            if not await self.shelf.get(name, sealed):
                return False
            await asyncio.to_thread(_convert, sealed, into, lambda *both: self._open(name, *both))
        finally:
            await asyncio.to_thread(sealed.unlink, missing_ok=True)
        return True

    async def names(self, folder: str) -> Sequence[str]:
        """List the stored files below a folder, by their whole names."""
        return await self.shelf.names(folder)

    async def remove(self, name: str) -> None:
        """Remove a stored file, if there is one."""
        await self.shelf.remove(name)

    def _seal(self, name: str, source: BinaryIO, target: BinaryIO) -> None:
        number, part = 0, source.read(_PART_BYTES)
        while True:
            following = source.read(_PART_BYTES)
            sealed = self.sealer.seal_bytes(_bind(name, number, last=not following), part)
            target.write(len(sealed).to_bytes(_SIZE_BYTES) + sealed)
            if not following:
                return
            number, part = number + 1, following

    def _open(self, name: str, source: BinaryIO, target: BinaryIO) -> None:
        number, sealed = 0, _read_part(source)
        while True:
            following = _read_part(source)
            part = self.sealer.open_bytes(_bind(name, number, last=not following), sealed)
            if part is None:
                raise OSError(f"{name} is damaged, or was encrypted with another BRIDGE_SECRET_KEY")
            target.write(part)
            if not following:
                return
            number, sealed = number + 1, following


def _bind(name: str, number: int, *, last: bool) -> str:
    return f"file {name} {number} {'end' if last else 'more'}"


def _read_part(source: BinaryIO) -> bytes:
    size = int.from_bytes(source.read(_SIZE_BYTES))
    return source.read(min(size, _PART_BYTES + _MORE_BYTES))


def _convert(source: Path, target: Path, work: Callable[[BinaryIO, BinaryIO], None]) -> None:
    with source.open("rb") as from_file, target.open("wb") as to_file:
        work(from_file, to_file)
