"""Stores files in a folder that all machines share.

A file appears under its name when all of it is on the disk.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4


@dataclass(frozen=True, slots=True)
class FolderShelf:
    """Files below a folder."""

    root: Path

    async def put(self, name: str, file: Path) -> None:
        """Store a copy of a file."""
        await asyncio.to_thread(_replace, file, self.root / name)

    async def get(self, name: str, into: Path) -> bool:
        """Copy a stored file to a path; False if there is none."""
        try:
            await asyncio.to_thread(shutil.copyfile, self.root / name, into)
        except FileNotFoundError:
            return False
        return True

    async def names(self, folder: str) -> Sequence[str]:
        """List the stored files below a folder, by their whole names."""
        found = await asyncio.to_thread(lambda: sorted((self.root / folder).rglob("*")))
        return [str(each.relative_to(self.root)) for each in found if each.is_file()]

    async def remove(self, name: str) -> None:
        """Remove a stored file, if there is one."""
        await asyncio.to_thread(_remove, self.root / name)


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
    with suppress(OSError):  # others are in it
        file.parent.rmdir()


def _replace(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.{uuid4().hex}.new")
    try:
        shutil.copyfile(source, new)
        new.chmod(0o600)
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
