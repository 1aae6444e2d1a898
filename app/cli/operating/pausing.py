"""`pause`, `resume`, `pauses`: through the running bridge, else in the store itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from app.cli.client import Client, connected
from app.cli.operating.pending import show_pending
from app.cli.stored import read_registry
from app.cli.tables import show_json
from app.clock import SystemClock
from app.config import Configuration
from app.errors import BridgeError, Conflict
from app.features.pause.shapes import PauseOut, PauseScope
from app.features.pause.store import SuspensionStore
from app.model.suspension import AGENT, ALL, PLACE, describe_pause
from app.store.database import Database, locked

T = TypeVar("T")
Confirm = Callable[[str], bool]


class NotConfirmed(BridgeError):
    """The person at the terminal said no."""


def pause(configuration: Configuration, scope: str | None) -> None:
    """Pause everything, or an agent or a place.

    Raises:
        BridgeError: the bridge refuses, or the store cannot be used.
    """
    named = _named(scope)

    async def stored(rows: SuspensionStore) -> None:
        await rows.add(_written(configuration, named), "operator")

    _show(_change(configuration, lambda client: client.pause(named), stored))


def resume(configuration: Configuration, scope: str | None, confirm: Confirm | None) -> None:
    """Let everything go on, or an agent or a place; what was restored only if `confirm` says so.

    Raises:
        BridgeError: the bridge refuses, or the store cannot be used.
    """
    named = _named(scope)
    restored = any(each.reason == "restored" for each in _list(configuration))
    if restored and named.everything and confirm is not None:
        show_pending(configuration)
        if not confirm("Send and begin all of this now?"):
            raise NotConfirmed("nothing was changed")

    async def stored(rows: SuspensionStore) -> None:
        if await rows.remove(_written(configuration, named)) is None:
            raise Conflict("that is not paused. `agent-bridge pauses` lists what is")

    _show(_change(configuration, lambda client: client.resume(named), stored))


def show(configuration: Configuration, *, as_json: bool) -> None:
    """List what is paused.

    Raises:
        BridgeError: the bridge refuses, or the store cannot be used.
    """
    paused = _list(configuration)
    if as_json:
        show_json([each.model_dump(mode="json") for each in paused])
    else:
        _show(paused)


def _list(configuration: Configuration) -> Sequence[PauseOut]:
    async def nothing(_rows: SuspensionStore) -> None:
        pass

    return _change(configuration, lambda client: client.pauses(), nothing)


def _change(
    configuration: Configuration,
    over_api: Callable[[Client], Awaitable[Sequence[PauseOut]]],
    stored: Callable[[SuspensionStore], Awaitable[None]],
) -> Sequence[PauseOut]:
    async def run() -> Sequence[PauseOut]:
        async with connected(configuration) as client:
            if client is not None:
                return await over_api(client)
        return await _on_store(configuration, stored)

    return asyncio.run(run())


async def _on_store(
    configuration: Configuration, change: Callable[[SuspensionStore], Awaitable[None]]
) -> Sequence[PauseOut]:
    """Change what is paused while no bridge runs."""
    name_of = read_registry(configuration).name
    with locked(configuration.data_dir):
        database = Database(configuration.database_url)
        database.open()
        try:
            rows = SuspensionStore(database, SystemClock().now)
            await change(rows)
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


def _named(scope: str | None) -> PauseScope:
    if scope is None:
        return PauseScope(all=True)
    return PauseScope(place=scope) if ":" in scope else PauseScope(agent=scope)


def _written(configuration: Configuration, scope: PauseScope) -> str:
    if scope.agent is not None:
        return f"{AGENT}{read_registry(configuration).find(scope.agent).id}"
    return ALL if scope.place is None else f"{PLACE}{scope.place}"


def _show(paused: Sequence[PauseOut]) -> None:
    for each in paused:
        sys.stdout.write(f"{each.words}\n")
    if not paused:
        sys.stdout.write("Nothing is paused.\n")
