"""Counts the files of commits before anything walks them.

A dozen objects can name ten billion files: folders that hold the same folder ten times, ten levels
deep. Git walks every one of them and takes all memory. Here each folder is read once, and its count
is used wherever it occurs.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from app.errors import GitFailed
from app.repos.git import Git

MOST_PATHS: Final = 1_000_000
"""Files and folders of one commit: twice those of the largest public repositories."""
_DEEPEST: Final = 256
"""Folders within each other: no tool makes half as many."""
_AT_ONCE: Final = 10_000
"""Folders per process: their names fit into memory with what they hold."""

_FOLDER_MODE: Final = 0o40000

_Folder = tuple[int, tuple[str, ...]]
"""How many entries a folder has, and the folders among them, by the names of their objects."""


async def find_excess(
    git: Git,
    repository: Path,
    commits: Sequence[str],
    *,
    view: Mapping[str, str] | None = None,
    most: int = MOST_PATHS,
) -> str:
    """Say which of some commits has too many files; empty if none has.

    Raises:
        GitFailed: they cannot be read.
    """
    roots = [f"{commit}^{{tree}}" for commit in commits]
    read = await _read(git, repository, roots, view)
    tops = [name for name, _ in read]
    folders = dict(read)
    for _ in range(_DEEPEST):
        deeper = dict.fromkeys(name for _, (_, below) in read for name in below)
        unread = [name for name in deeper if name not in folders]
        if not unread:
            break
        if len(folders) + len(unread) > most:
            return f"This has more than {most:,} different folders. {_REMEDY}"
        read = await _read(git, repository, unread, view)
        folders |= read
    else:
        return f"This has more than {_DEEPEST:,} folders within each other. {_REMEDY}"
    counts: dict[str, int] = {}
    for commit, top in zip(commits, tops, strict=True):
        if _count(folders, top, counts) > most:
            return f"Commit {commit[:12]} has more than {most:,} files and folders. {_REMEDY}"
    return ""


_REMEDY: Final = "The bridge does not work with so many: remove folders from the commit."


async def _read(
    git: Git, repository: Path, names: Sequence[str], view: Mapping[str, str] | None
) -> list[tuple[str, _Folder]]:
    """Read folders, in the order in which they are named."""
    read: list[tuple[str, _Folder]] = []
    for start in range(0, len(names), _AT_ONCE):
        written = await git.run(
            repository,
            *("cat-file", "--batch", "--buffer"),
            given="".join(f"{name}\n" for name in names[start : start + _AT_ONCE]).encode(),
            more=view,
        )
        read += await asyncio.to_thread(_parse, written)
    return read


def _parse(written: bytes) -> list[tuple[str, _Folder]]:
    """Read the folders that git wrote, each after a line with its name, kind and size."""
    read: list[tuple[str, _Folder]] = []
    start = 0
    while start < len(written):
        line = written.index(b"\n", start)
        name, kind, *size = written[start:line].split(b" ")
        if kind != b"tree":
            raise GitFailed("git cat-file", written[start:line].decode(errors="replace"))
        end = line + 1 + int(size[0])
        entry = rb"(\d+) [^\0]+\0(.{%d})" % (len(name) // 2)
        entries = re.findall(entry, written[line + 1 : end], re.DOTALL)
        below = tuple(each.hex() for mode, each in entries if int(mode, 8) == _FOLDER_MODE)
        read.append((name.decode(), (len(entries), below)))
        start = end + 1
    return read


def _count(folders: Mapping[str, _Folder], top: str, counts: dict[str, int]) -> int:
    """Count what is in a folder and in those below it; `counts` keeps what is known."""
    waiting = [top]
    while waiting:
        entries, below = folders[waiting[-1]]
        unknown = [name for name in below if name not in counts]
        if unknown:
            waiting += unknown
        else:
            counts[waiting.pop()] = entries + sum(counts[name] for name in below)
    return counts[top]
