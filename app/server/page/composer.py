"""Serves what the message box offers: commands, names of files, and where a new thread can work.

An agent wrote what is in a workspace: no link is followed, and what is looked at is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from app.children.tree import Tree
from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.model.text import reveal_line
from app.server.login import Visitor, visitor
from app.server.page import queries
from app.server.page.queries import NEW_THREAD
from app.server.page.view.roster import AgentView
from app.server.page.workspace import tree_of
from app.server.shapes import CHOICE_CHARACTERS
from app.server.site import RuntimeOf

OFFERED: Final = 12
"""Names that are offered at once: as many as fit above the message box."""
FOLDERS: Final = 2_000
"""Folders that are looked into: a large repository, a fraction of a second."""
NAMES: Final = 2_000
"""Names of one folder that are looked at."""
SKIPPED: Final = {".git", "node_modules", ".venv", "__pycache__"}
"""Folders that no person means."""

router = APIRouter(include_in_schema=False)
Who = Annotated[Visitor, Depends(visitor)]
Name = Annotated[str, Query(max_length=CHOICE_CHARACTERS)]


@router.get("/repositories")
async def list_repositories(runtime: RuntimeOf, _who: Who, agent: str) -> JSONResponse:
    """List where an agent can work in a new thread."""
    offered = await runtime.picker.offer(_known(runtime, agent))
    return _json(
        {
            "recent": list(offered.recent),
            "listed": list(offered.listed),
            "problem": offered.problem,
        }
    )


@router.get("/repositories/check")
async def check_repository(runtime: RuntimeOf, _who: Who, agent: str, name: Name) -> JSONResponse:
    """Check a choice before anything is sent; a problem is said next to the picker."""
    try:
        return _json({"name": await runtime.picker.check(NEW_THREAD, _known(runtime, agent), name)})
    except Conflict as error:
        return _json({"name": "", "problem": str(error)})


def _known(runtime: Runtime, agent: str) -> str:
    if agent not in runtime.agents:
        raise NotFound("agent", agent)
    return agent


def _json(content: object) -> JSONResponse:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


@dataclass(frozen=True, slots=True)
class Item:
    """One command."""

    name: str
    words: str
    """What it does."""
    text: str
    """What it puts into the message box."""
    whole: bool
    """Whether that is all, so that it can be sent."""


BRIDGE: Final = (
    Item("/stop", "Stop the work and hold what is queued", "stop", whole=True),
    Item("/stop all", "Stop the work and drop what is queued", "stop all", whole=True),
    Item("/new", "Start over with your next message", "new", whole=True),
    Item("/status", "Say what the agents are doing", "status", whole=True),
    Item("/queue now", "Send what is queued now", "queue now", whole=True),
    Item("/queue drop", "Discard what is queued", "queue drop", whole=True),
    Item("/listen latest", "Let the agent you spoke to last answer", "listen latest", whole=True),
    Item("/listen all", "Let every agent answer", "listen all", whole=True),
    Item("/listen mention", "Let only mentioned agents answer", "listen mention", whole=True),
    Item("/agent", "Hand over to another agent", "agent ", whole=False),
    Item("/schedule", "Ask the same again and again", 'schedule "0 9 * * 1-5" ', whole=False),
    Item("/repo", "Work in another repository", "repo ", whole=False),
    Item("/help", "List all commands", "help", whole=True),
)


def items(offered: Iterable[tuple[AgentView, Iterable[Mapping[str, str]]]]) -> list[Item]:
    """List the commands of agents, then those of the bridge."""
    known, made = list(offered), list[Item]()
    for agent, listed in known:
        to = "" if len(known) == 1 else f"@{agent.name} "
        for each in listed:
            name = reveal_line(each["name"])
            facts = (agent.title, each.get("description"), each.get("hint", ""))
            about = reveal_line(" · ".join(filter(None, facts)))
            made.append(Item(f"/{name}", about, f"{to}/{name} ", whole=False))
    return [*made, *BRIDGE]


@router.get("/commands/t/{service}/{name:path}")
async def read_commands(runtime: RuntimeOf, _who: Who, service: str, name: str) -> list[Item]:
    """List the commands of a thread."""
    roster = queries.roster_of(runtime)
    return items(
        [
            (roster[session.key.agent], await runtime.stores.transcript.offered(session.id))
            for session in runtime.stores.sessions.in_place(queries.place_key(service, name))
        ]
    )


@router.get("/names/t/{service}/{name:path}")
async def read_names(
    runtime: RuntimeOf,
    _who: Who,
    service: str,
    name: str,
    q: Annotated[str, Query(max_length=200)] = "",
) -> list[Item]:
    """List workspace files of a thread's agents whose path has a text in it."""
    found: dict[str, None] = {}
    for session in runtime.stores.sessions.in_place(queries.place_key(service, name)):
        try:
            tree = tree_of(runtime, session)
        except NotFound:
            continue
        found |= dict.fromkeys(await asyncio.to_thread(_find, tree, q.lower()))
    return [Item(path, "", _written(path), whole=False) for path in _rank(found, q)]


def _find(tree: Tree, wanted: str) -> list[str]:
    return [path for path in _walk(tree) if wanted in path.lower()]


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
