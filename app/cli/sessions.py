"""`sessions`: shows the work of agents, from the running bridge or else from the store."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Argument, Option

from app.model.types import SessionState
from app.server.shapes import EntryOut, SessionDetail, SessionOut
from app.terminal.api import find_bridge
from app.terminal.framing import Json, add_group, command_name, commands, read_configuration
from app.terminal.output import one_line, show_json, show_list, transcript_lines, when

COMMANDS = commands()
sessions = add_group(COMMANDS, "sessions", "Show the work of agents in conversations.")


@sessions.command("list")
def list_sessions(
    agent: Annotated[str | None, Option(help="Only sessions of this agent.")] = None,
    state: Annotated[SessionState | None, Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, Option(min=1, max=500, help="The most sessions to list.")] = 50,
    *,
    as_json: Json = False,
) -> None:
    """List conversations, the one used last first."""
    configuration = read_configuration()
    if (bridge := find_bridge(configuration)) is not None:
        found = bridge.items(SessionOut, "/sessions", agent=agent, state=state, limit=limit)
    else:
        from app.terminal.stored import stored_sessions  # noqa: PLC0415 - 0.5 s that a bridge saves

        found = stored_sessions(configuration, agent=agent, state=state, limit=limit)
    show_list(
        found,
        ("id", "state", "agent", "thread", "used", "title"),
        lambda each: (
            *(each.id, each.state, each.agent, each.thread, when(each.updated_at), each.title),
        ),
        as_json=as_json,
        nothing=f"No such sessions. Start one with `{command_name()} ask`.",
    )


@sessions.command("show")
def show_session(
    session: Annotated[int, Argument(metavar="ID", help="Its number; see `sessions list`.")],
    *,
    as_json: Json = False,
) -> None:
    """Show a conversation: what was said and what was done."""
    configuration = read_configuration()
    if (bridge := find_bridge(configuration)) is not None:
        path = f"/sessions/{session}"
        found = bridge.get(SessionDetail, path)
        entries = bridge.all_items(EntryOut, f"{path}/transcript", after=0)
    else:
        from app.terminal.stored import stored_session  # noqa: PLC0415 - 0.5 s that a bridge saves

        found, entries = stored_session(configuration, session)
    if as_json:
        rows = [each.model_dump(mode="json") for each in entries]
        show_json({**found.model_dump(mode="json"), "transcript": rows})
        return
    head = f"Session {found.id} · {found.agent} · {found.state} · {when(found.updated_at)}"
    sys.stdout.write(f"{head}\n{one_line(found.title)}\n")
    for line in transcript_lines(entries, found.agent):
        sys.stdout.write(f"{line}\n")
