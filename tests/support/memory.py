"""A real store on a file of the test, and messages to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from sqlalchemy import Dialect, event

from app.clock import Clock
from app.model.inbound import Decision, Delivery, Effect, Heard
from app.model.keys import PlaceKey
from app.model.types import BridgeSessionRequest, Speaker, TurnRef
from app.model.updates import Ask, AskRequest
from app.services import find_area
from app.store.database import FILE_NAME, Database, sqlite_url
from app.store.dialects import is_postgresql
from app.store.stores import Stores
from tests.support import postgres

ANN = Speaker("ann", "Ann")

_COMPILED: dict[Any, Any] = {}
"""Statements that one store has compiled serve all others of the process."""
_COMPILED_FOR_SERVERS: dict[Any, Any] = {}


@contextmanager
def open_stores(folder: Path, clock: Clock) -> Iterator[tuple[Database, Stores]]:
    """Open a store in a folder; a new one begins as a copy of an empty one."""
    database = _open_on_server(folder) if postgres.is_wanted() else _open_file(folder)
    database.open()
    try:
        yield database, Stores.on(database, clock.now, find_area)
    finally:
        database.close()


def _open_on_server(folder: Path) -> Database:
    database = Database(postgres.server().provide(folder))
    database.engine.update_execution_options(compiled_cache=_COMPILED_FOR_SERVERS)
    return database


def _open_file(folder: Path) -> Database:
    prepare_store(folder)
    database = Database(sqlite_url(folder))
    database.engine.dialect = empty_store().dialect
    database.engine.update_execution_options(compiled_cache=_COMPILED)
    sync_never(database)
    return database


def prepare_store(folder: Path) -> None:
    """Put an empty store into a folder that has none."""
    file = folder / FILE_NAME
    if not file.exists() and not postgres.is_wanted():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_bytes(empty_store().content)


def sync_never(database: Database) -> None:
    """Let connections not wait for the disk: a test survives no loss of power anyway."""
    if is_postgresql(database.engine.dialect):
        return
    event.listen(database.engine, "connect", _sync_never)
    database.engine.dispose()  # those that there are


@dataclass(frozen=True, slots=True)
class _Empty:
    """What is the same for every new store."""

    content: bytes
    dialect: Dialect
    """Compiled statements are kept by it."""


@cache
def empty_store() -> _Empty:
    """Make an empty store, once: migrations take longer than most tests, and have their own."""
    with TemporaryDirectory() as folder:
        database = Database(sqlite_url(Path(folder)))
        database.open()
        database.close()
        return _Empty((Path(folder) / FILE_NAME).read_bytes(), database.engine.dialect)


def _sync_never(connection: Any, _record: object) -> None:
    connection.execute("pragma synchronous = OFF")


def delivery(adapter: str = "web:demo", body: bytes = b"{}", **more: str) -> Delivery:
    """Make a delivery that was never seen before."""
    fresh = uuid4().hex
    return Delivery(
        adapter=adapter,
        delivery_id=more.get("delivery_id", fresh),
        signature=more.get("signature", fresh),
        headers={"x": "y"},
        body=body,
        received_at=1.0,
    )


def heard(text: str, place: str = "t1", speaker: Speaker = ANN, message_id: str = "") -> Heard:
    """Say something in a place."""
    return Heard(
        place=PlaceKey("web", place),
        external=place,
        message_id=message_id or uuid4().hex,
        speaker=speaker,
        text=text,
    )


async def opened(stores: Stores, request: AskRequest, ref: TurnRef) -> tuple[Ask, int]:
    """Open an ask that can be answered for ages; returns it and its post."""
    found = await stores.asks.open(request, ref, deadline=1e12)
    assert found is not None
    return found.ask, found.posts[0]


def decision(said: Heard, *agents: str, effects: tuple[Effect, ...] = ()) -> Decision:
    """Decide that these agents answer."""
    return Decision(
        delivery=0,
        heard=said,
        outcome="done",
        reason="mentioned",
        requests=tuple(
            BridgeSessionRequest(
                external_session_id=said.external,
                service_name=said.place.service,
                agent_name=agent,
                prompt=said.text,
                speaker=said.speaker,
                message_id=said.message_id,
                surface=said.place,
            )
            for agent in agents
        ),
        effects=effects,
    )
