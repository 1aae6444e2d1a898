"""Serves the names of workspace files that the message box of a thread offers.

An agent wrote what is there: no link is followed, and what is looked at is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query

from app.children.tree import Tree
from app.errors import NotFound
from app.model.text import reveal_line
from app.server.login import Visitor, visitor
from app.server.page import queries
from app.server.page.browse import tree_of
from app.server.page.view.menu import Item
from app.server.parts import PartsOf

OFFERED: Final = 12
"""Names that are offered at once: as many as fit above the message box."""
FOLDERS: Final = 2_000
"""Folders that are looked into: a large repository, a fraction of a second."""
NAMES: Final = 2_000
"""Names of one folder that are looked at."""
SKIPPED: Final = {".git", "node_modules", ".venv", "__pycache__"}
"""Folders that no person means."""

router = APIRouter(include_in_schema=False)


@router.get("/names/t/{service}/{name:path}")
async def read_names(
    parts: PartsOf,
    _who: Annotated[Visitor, Depends(visitor)],
    service: str,
    name: str,
    q: Annotated[str, Query(max_length=200)] = "",
) -> list[Item]:
    """List workspace files of a thread's agents whose path has a text in it."""
    found: dict[str, None] = {}
    for session in parts.sessions.in_place(queries.place_key(service, name)):
        try:
            tree = tree_of(parts, session)
        except NotFound:
            continue
        found |= dict.fromkeys(await asyncio.to_thread(_find, tree, q))
    return [Item(path, "", _written(path), whole=False) for path in _rank(found, q)]


def _find(tree: Tree, part: str) -> list[str]:
    return [path for path in _walk(tree) if part.lower() in path.lower()]


def _walk(tree: Tree) -> Iterator[str]:
    """Yield the paths of plain files, those of upper folders first."""
    waiting = deque([PurePosixPath()])
    for _ in range(FOLDERS):
        if not waiting:
            return
        here = waiting.popleft()
        try:
            entries = tree.entries(here, NAMES)
        except OSError:  # it was removed meanwhile
            continue
        for entry in sorted(entries, key=lambda each: each.name):
            path = here / entry.name
            if entry.is_folder and entry.name not in SKIPPED:
                waiting.append(path)
            elif entry.is_file and reveal_line(str(path)) == str(path):
                yield str(path)


def _rank(paths: Iterable[str], part: str) -> list[str]:
    """Put first what begins with the text: its name, then its path."""
    wanted = part.lower()

    def distance(path: str) -> tuple[bool, bool]:
        low = path.lower()
        return not low.rpartition("/")[2].startswith(wanted), not low.startswith(wanted)

    return sorted(paths, key=distance)[:OFFERED]


def _written(path: str) -> str:
    """Write a path into a message; one with spaces is marked as one word."""
    return f"`{path}` " if " " in path else f"{path} "
