"""Repairs a mirror after a crash or disk damage, and salvages what can still be read.

Every step may be interrupted at any moment and be repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from app.descent import discard, walk
from app.repos.git import COMMIT, Git

logger = logging.getLogger(__name__)

COMPLETE: Final = "complete"
"""The file that marks a new mirror as complete."""
_CHUNK_BYTES: Final = 1024**2
_LOOSE: Final = re.compile(r"[0-9a-f]{2}/[0-9a-f]{38}")
_LOOSE_BYTES: Final = 256 * 1024**2
"""A loose object that is larger is not worth the memory it takes to check it."""


def swap(new: Path, mirror: Path) -> None:
    """Put a new mirror in the place of a damaged one."""
    damaged = mirror.with_suffix(".damaged")
    discard(damaged)
    if mirror.exists():
        mirror.rename(damaged)
    new.rename(mirror)
    discard(damaged)


def tidy(mirror: Path) -> None:
    """Finish or undo what a crash left half done, and remove stale locks."""
    new = mirror.with_suffix(".new")
    damaged = mirror.with_suffix(".damaged")
    if not mirror.exists() and (new / COMPLETE).exists():
        new.rename(mirror)
    elif not mirror.exists() and damaged.exists():
        damaged.rename(mirror)
    for rest in (new, damaged):
        discard(rest)
    remove_locks(mirror)


def remove_locks(repository: Path) -> None:
    """Remove what a git that was killed left behind in a bare repository of the bridge."""
    for lock in repository.glob("*.lock"):
        lock.unlink(missing_ok=True)
    for found in walk(repository / "refs"):
        if found.name.endswith(".lock") and not found.is_folder:
            os.unlink(found.name, dir_fd=found.folder)
    for rest in (*repository.glob("objects/pack/tmp_*"), *repository.glob("objects/??/tmp_obj_*")):
        rest.unlink(missing_ok=True)
    for quarantine in repository.glob("objects/tmp_objdir-*"):
        discard(quarantine)


async def salvage(git: Git, old: Path, new: Path) -> None:
    """Copy what can still be read of a damaged mirror and is not on the remote."""
    for pack in sorted((old / "objects" / "pack").glob("*.pack")):
        await _unpack(git, pack, new)
    copied = await asyncio.to_thread(_copy_loose, old / "objects", new / "objects")
    if copied:
        logger.info("kept %d loose objects of the damaged mirror", copied)


async def keep_boundaries(git: Git, old: Path, new: Path) -> None:
    """Record where the history of a shallow mirror ended: what was kept still ends there."""
    if not (old / "shallow").exists():
        return
    ends = set(_lines(old / "shallow")) | set(_lines(new / "shallow"))
    found = await git.run(
        new,
        *("cat-file", "--batch-check=%(objectname)"),
        given="".join(f"{end}\n" for end in sorted(ends)).encode(),
    )
    there = [line for line in found.decode().splitlines() if COMMIT.fullmatch(line)]
    (new / "shallow").write_text("".join(f"{end}\n" for end in there))


async def _unpack(git: Git, pack: Path, new: Path) -> None:
    async with git.start(new, "unpack-objects", "-r", "-q") as child:
        try:
            with pack.open("rb") as file:
                while data := await asyncio.to_thread(file.read, _CHUNK_BYTES):
                    child.write(data)
                    await child.drain()
        except (BrokenPipeError, OSError):
            pass  # it gave up on a broken pack; what it had read by then is there
        child.close_input()
        await child.wait()


def _copy_loose(old: Path, new: Path) -> int:
    return sum(_copy_object(old, new, name) for name in _loose(old))


def _loose(objects: Path) -> Iterator[str]:
    for file in objects.glob("??/*"):
        name = f"{file.parent.name}/{file.name}"
        if _LOOSE.fullmatch(name):
            yield name


def _copy_object(old: Path, new: Path, name: str) -> bool:
    target = new / name
    try:
        if target.exists() or (old / name).stat().st_size > _LOOSE_BYTES:
            return False
        data = (old / name).read_bytes()
        # The name of an object is the hash of what is in it: what does not fit is damaged.
        content = zlib.decompress(data)
    except (OSError, zlib.error):
        return False
    if hashlib.sha1(content, usedforsecurity=False).hexdigest() != name.replace("/", ""):
        return False
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data)
    return True


def _lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []
