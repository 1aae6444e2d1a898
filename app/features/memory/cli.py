"""`agents memory`: what an agent remembers."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from typer import Argument, Option

from app.features.memory.model import NoteOut
from app.terminal.api import Api, agent_path
from app.terminal.framing import Json, add_group, commands, examples, show_list

COMMANDS = commands()
agents = add_group(COMMANDS, "agents")
Name = Annotated[str, Argument(metavar="NAME", help="The name of the agent; see `agents list`.")]


@agents.command(
    "memory", epilog=examples("agents memory claude", "agents memory claude --search staging")
)
def remembered(
    name: Name,
    *,
    search: Annotated[str, Option(help="Only notes that have all these words.")] = "",
    remove: Annotated[
        str | None, Option(metavar="NOTE", help="Remove this note, named as in the list.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an agent remembers, the newest first, or remove a note."""
    api, path = Api(), f"{agent_path(name)}/memory"
    if remove is not None:
        day, _, note = remove.partition("/")
        api.request("DELETE", f"{path}/{quote(day, safe='')}/{quote(note or 'none', safe='')}")
        return
    show_list(
        api.items(NoteOut, path, q=search),
        ("note", "time", "session", "text"),
        lambda each: (f"{each.day}/{each.id}", each.time, each.session, each.text),
        as_json=as_json,
    )
