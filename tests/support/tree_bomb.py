"""Trees with far more paths than objects."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from tests.support.git_server import git

SCRIPT = """\
T=$(printf "100644 blob $(echo x | git hash-object -w --stdin)\\tfile\\n" | git mktree)
for level in 0 1 2 3 4 5 6 7 8 9; do
  T=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $T\\t$n\\n"; done | git mktree)
done
BOMB=$(git commit-tree -p HEAD -m Bomb $T)"""
"""Makes a commit with ten billion files, in a shell inside a repository."""


def nest(repository: Path, levels: Sequence[int]) -> str:
    """Make folders that hold one folder so many times each, above one file; returns the topmost."""
    blob = git(repository, "hash-object", "-w", "--stdin", given="x\n")
    below, mode = blob, "100644"
    for count in (1, *reversed(levels)):
        names = sorted(f"{number:04}" for number in range(count))
        entries = (f"{mode} {name}\0".encode() + bytes.fromhex(below) for name in names)
        below, mode = _write_tree(repository, b"".join(entries)), "40000"
    return below


def _write_tree(repository: Path, entries: bytes) -> str:
    """Write a tree without starting git: some tests need thousands."""
    content = f"tree {len(entries)}\0".encode() + entries
    name = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    objects = repository / "objects"
    (objects / name[:2]).mkdir(exist_ok=True)
    (objects / name[:2] / name[2:]).write_bytes(zlib.compress(content, 1))
    return name
