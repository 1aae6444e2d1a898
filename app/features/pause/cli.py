"""`pause`, `resume`, `pauses` and `drain`: what may begin now, and what waits.

Pauses also work without a running bridge, in the store itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Final

import typer
from typer import Argument, Option

from app.clock import SystemClock
from app.config import Configuration
from app.errors import Conflict
from app.features.pause.store import SuspensionStore, describe_pause
from app.features.pause.web import DrainOut, PauseOut
from app.server.shapes import Page
from app.store.commits.admission import AGENT, ALL, PLACE
from app.store.database import Database, locked
from app.terminal.api import Api, find_bridge
from app.terminal.framing import (
    Json,
    Yes,
    commands,
    confirm,
    count,
    examples,
    read_configuration,
    show_json,
)
from app.terminal.pending import show_pending
from app.terminal.stored import read_registry

LOOK_SECONDS: Final = 0.5
"""Between two looks at what still runs."""
Change = Callable[[SuspensionStore], Coroutine[None, None, None]]

COMMANDS = commands()
Scope = Annotated[
    str | None,
    Argument(
        metavar="AGENT|PLACE",
        help="The name of an agent, or a place such as slack:C0123 or github:acme/shop.",
    ),
]
Everything = Annotated[bool, Option("--all", help="Everything.")]


@COMMANDS.command(epilog=examples("pause --all", "pause codex", "pause slack:C0123"))
def pause(scope: Scope = None, *, everything: Everything = False) -> None:
    """Pause everything, one agent, or one place.

    No new turn begins there, and running ones end as usual. Messages are kept and answered after
    `resume`; people are told once. This lasts over restarts.
    """
    configuration = _read(scope, everything=everything)

    async def add(rows: SuspensionStore) -> None:
        await rows.add(_stored_name(configuration, scope), "operator")

    _change(configuration, "/pauses", scope, add)


@COMMANDS.command(epilog=examples("resume --all", "resume codex"))
def resume(scope: Scope = None, *, everything: Everything = False, yes: Yes = False) -> None:
    """Let what was paused go on.

    After a restore it shows what will be sent and begun, and asks.
    """
    configuration = _read(scope, everything=everything)
    restored = any(each.reason == "restored" for each in _list(configuration))
    if restored and everything and not yes:
        show_pending(configuration)
        confirm("Send and begin all of this now?", otherwise="nothing was changed")

    async def remove(rows: SuspensionStore) -> None:
        if await rows.remove(_stored_name(configuration, scope)) is None:
            raise Conflict("that is not paused. `agent-bridge pauses` lists what is")

    _change(configuration, "/pauses/resume", scope, remove)


@COMMANDS.command("pauses")
def list_pauses(*, as_json: Json = False) -> None:
    """List what is paused."""
    paused = _list(read_configuration())
    if as_json:
        show_json([each.model_dump(mode="json") for each in paused])
    else:
        _show(paused)


@COMMANDS.command(epilog=examples("drain --wait", "drain --wait --seconds 600", "drain --undo"))
def drain(
    *,
    wait: Annotated[bool, Option("--wait", help="Wait until nothing runs.")] = False,
    seconds: Annotated[
        float, Option(min=1, help="How long to wait; the status is 1 after that.")
    ] = 3600.0,
    undo: Annotated[bool, Option("--undo", help="Begin turns again.")] = False,
) -> None:
    """Let running turns end, and begin no others.

    Before a restart: turns that wait for a person are parked, and the answer continues them.
    Messages are kept for the next start, and /readyz answers 503.
    """
    api = Api()
    found = api.send(DrainOut, "DELETE" if undo else "POST", "/drain")
    deadline = time.monotonic() + seconds
    while wait and not undo and (found.turns or found.posts) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        found = api.get(DrainOut, "/drain")
    is_over = not found.turns and not found.posts
    if not found.draining:
        words = "Not draining: turns begin again."
    elif is_over:
        words = "Drained: nothing runs. Stop the bridge now."
    else:
        turns = count(found.turns, "turn")
        words = f"Draining: {turns} and {found.posts} unsent posts are left."
    sys.stdout.write(f"{words}\n")
    raise typer.Exit(1 if wait and not undo and not is_over else 0)


def _list(configuration: Configuration) -> Sequence[PauseOut]:
    if (bridge := find_bridge(configuration)) is not None:
        return bridge.items(PauseOut, "/pauses")
    return _on_store(configuration)


def _on_store(
    configuration: Configuration,
    change: Callable[[SuspensionStore], Coroutine[None, None, None]] | None = None,
) -> Sequence[PauseOut]:
    """Change what is paused while no bridge runs, and list it."""
    name_of = read_registry(configuration).name
    with locked(configuration.data_dir):
        database = Database(configuration.database_url)
        database.open()
        try:
            rows = SuspensionStore(database, SystemClock().now)
            if change is not None:
                asyncio.run(change(rows))
            return [
                PauseOut(
                    kind=kind,
                    name=name_of(name) if kind == "agent" else name,
                    since=each.since,
                    reason=each.reason,
                    words=describe_pause(each, name_of),
                )
                for each in rows.all()
                for kind, name in (each.split(),)
            ]
        finally:
            database.close()


def _read(scope: str | None, *, everything: bool) -> Configuration:
    if (scope is None) != everything:
        raise typer.BadParameter("say --all, or name one agent or place.")
    return read_configuration()


def _change(configuration: Configuration, path: str, scope: str | None, change: Change) -> None:
    """Pause or resume, over the API or else in the store, and show what is paused then."""
    if (bridge := find_bridge(configuration)) is None:
        _show(_on_store(configuration, change))
        return
    kind = "place" if scope and ":" in scope else "agent"
    named = {"all": True} if scope is None else {kind: scope}
    _show(bridge.post(Page[PauseOut], path, **named).items)


def _stored_name(configuration: Configuration, scope: str | None) -> str:
    if scope is None:
        return ALL
    if ":" in scope:
        return f"{PLACE}{scope}"
    return f"{AGENT}{read_registry(configuration).find(scope).id}"


def _show(paused: Sequence[PauseOut]) -> None:
    for each in paused:
        sys.stdout.write(f"{each.words}\n")
    if not paused:
        sys.stdout.write("Nothing is paused.\n")
