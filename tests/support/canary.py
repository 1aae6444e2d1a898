"""Looks for a word in every byte of a folder: names, content, the pages and the log of a store."""

from __future__ import annotations

from pathlib import Path

LOGS = (".log", "log.txt")
"""What a bridge logs is not part of its data."""


def find(folder: Path, word: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """List the files and folders below a folder that hold a word, in their name or content."""
    sought = word.encode()
    found = []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if inside.parts[0] in but or path.name.endswith(LOGS):
            continue
        is_named = sought in path.name.encode()
        if is_named or (path.is_file() and not path.is_symlink() and sought in path.read_bytes()):
            found.append(str(inside))
    return found
