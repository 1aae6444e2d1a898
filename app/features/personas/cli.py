"""`agents files`: who an agent is, and what it is told."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from typer import Argument, Option

from app.errors import Conflict, NotFound
from app.features.personas.model import FileDetail, FileOut
from app.terminal.api import Api, agent_path
from app.terminal.framing import Json, add_group, commands, examples, say, show_list

SHARED: Final = "-"
"""Means all agents where the name of one is expected."""
STDIN: Final = "-"

COMMANDS = commands()
agents = add_group(COMMANDS, "agents")


class FileAction(StrEnum):
    """What to do with an agent's files."""

    LIST = "list"
    SHOW = "show"
    PUT = "put"
    REMOVE = "remove"
    UNDO = "undo"


@agents.command(
    "files",
    epilog=examples(
        "agents files reviewer",
        "agents files reviewer put SOUL.md < soul.md",
        "agents files reviewer undo SOUL.md",
        "agents files - put USER.md --from user.md",
    ),
)
def agent_files(
    name: Annotated[str, Argument(metavar="NAME", help="The name of the agent; - for all agents.")],
    action: Annotated[
        FileAction, Argument(metavar="ACTION", help="list, show, put, remove or undo.")
    ] = FileAction.LIST,
    path: Annotated[str, Argument(metavar="FILE", help="Such as SOUL.md.")] = "",
    *,
    source: Annotated[
        str, Option("--from", metavar="PATH", help="What to put; - reads stdin.")
    ] = "-",
    as_json: Json = False,
) -> None:
    """Show and change who an agent is and what it is told.

    The files are IDENTITY.md, SOUL.md, AGENTS.md, TOOLS.md, MEMORY.md and memory/YYYY-MM-DD.md;
    for all agents AGENTS.md, TOOLS.md and USER.md.
    """
    if action is not FileAction.LIST and not path:
        raise Conflict(f"`agents files {name} {action}` needs a file, such as SOUL.md")
    api = Api()
    text = _read_text(source) if action is FileAction.PUT else ""
    files = "/files" if name == SHARED else f"{agent_path(name)}/files"
    if action is not FileAction.LIST and {"", ".", ".."} & set(path.split("/")):
        raise NotFound("file", path)  # an address with these would mean another one
    address = f"{files}/{quote(path)}"
    match action:
        case FileAction.LIST:
            show_list(
                api.items(FileOut, files),
                ("file", "size", "changed", "problem"),
                lambda each: (
                    *(each.path, f"{each.size} bytes"),
                    f"{datetime.fromtimestamp(each.changed_at, UTC):%Y-%m-%d %H:%M UTC}",
                    each.problem,
                ),
                as_json=as_json,
            )
        case FileAction.SHOW:
            found = api.get(FileDetail, address)
            sys.stdout.write(found.text)
            if found.problem:
                say(f"{path}: {found.problem}")
        case FileAction.PUT:
            api.request("PUT", address, json={"text": text})
            say(f"{path} was written. Running sessions are told at their next turn.")
        case FileAction.REMOVE:
            api.request("DELETE", address)
            say(f"{path} was removed. `agents files {name} undo {path}` brings it back.")
        case FileAction.UNDO:
            found = api.post(FileDetail, f"{address}/undo")
            say(f"{path} is as before." if found.digest else f"{path} is gone, as before.")


def _read_text(source: str) -> str:
    content = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{source} is not UTF-8 text. Nothing was written.") from None
