"""What belongs to a conversation when it is erased: its places, its events, and its files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, func, insert, select

from app.clock import SystemClock
from app.features.conversations.store import ConversationChanges
from app.model.keys import PlaceKey
from app.model.posts import Note, NoteCode
from app.store import tables
from app.store.database import Database
from app.store.stores import Stores
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio

CHAT = PlaceKey("slack", "C1:1.1")
PULL = PlaceKey("github", "acme/widget:7")
CLEARED = Note(NoteCode.CLEARED, "Ann")


@dataclass
class Memory:
    """A store that a test fills by hand."""

    database: Database
    stores: Stores

    def add(self, table: Table, **row: Any) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(insert(table), row)

    def count(self, table: Table) -> int:
        with self.database.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.database.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def place(self, number: int, key: PlaceKey) -> None:
        self.add(tables.place, id=number, service=key.service, name=key.name, title="A title")

    def session(self, number: int, place: int, agent: str) -> None:
        times = {"created_at": 1.0, "updated_at": 1.0}
        self.add(tables.session, id=number, agent=agent, place=place, **times)

    def surface(self, session: int, place: int, key: PlaceKey, agent: str) -> None:
        named = {"service": key.service, "external": key.name, "agent": agent}
        self.add(tables.surface, session=session, place=place, **named)

    def message(self, number: int, place: int, url: str = "") -> None:
        files = [{"name": "a.txt", "media_type": "text/plain", "url": url}] if url else []
        row = {"place": place, "text": "hello", "at": 1.0, "data": {"files": files}}
        self.add(tables.transcript, id=number, kind="message", **row)
        who = {"speaker_id": "ann", "speaker_kind": "person"}
        self.add(
            tables.message, id=number, place=place, message_id=f"m{number}", files=files, **who
        )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Open a store with a thread whose branch became a pull request."""
    with open_stores(tmp_path, SystemClock()) as (database, stores):
        made = Memory(database, stores)
        made.place(1, CHAT)
        made.place(2, PULL)
        made.session(1, 1, "claude")
        made.surface(1, 1, CHAT, "claude")
        made.surface(1, 2, PULL, "claude")
        made.message(1, 1, "aa/a.txt")
        made.message(2, 2)
        yield made


async def test_a_pull_request_goes_with_the_conversation_that_made_it(memory: Memory) -> None:
    conversations = memory.stores.open(ConversationChanges)
    held = await conversations.holdings(CHAT)
    assert held is not None
    assert (set(held.places), held.messages, held.uploads) == ({CHAT, PULL}, 2, ("aa/a.txt",))
    elsewhere = await conversations.holdings(PULL)
    assert elsewhere is not None
    assert elsewhere.elsewhere == CHAT

    assert await conversations.erase(CHAT)

    for table in (tables.place, tables.session, tables.surface, tables.message, tables.transcript):
        assert memory.count(table) == 0
    # What comes again is known in both places.
    assert memory.stores.decisions.decided(CHAT, "m1")
    assert memory.stores.decisions.decided(PULL, "m2")
    assert not memory.stores.decisions.decided(PULL, "m3")


async def test_a_place_that_another_conversation_also_uses_stays(memory: Memory) -> None:
    other = PlaceKey("linear", "ENG-1")
    memory.place(3, other)
    memory.session(2, 3, "codex")
    memory.surface(2, 3, other, "codex")
    memory.surface(2, 2, PULL, "codex")
    memory.message(3, 3, "aa/a.txt")
    conversations = memory.stores.open(ConversationChanges)
    held = await conversations.holdings(CHAT)
    assert held is not None
    # Its file stays too, for the one that also has it.
    assert (held.places, held.uploads) == ((CHAT,), ())
    assert held.shared == {"aa"}

    assert await conversations.erase(CHAT)

    assert memory.count(tables.place) == 2
    assert memory.stores.decisions.place(PULL).present == ("codex",)


async def test_nothing_is_cleared_or_erased_while_a_turn_is_open(memory: Memory) -> None:
    memory.add(tables.turn, id=1, session=1, surface=1, created_at=1.0)
    conversations = memory.stores.open(ConversationChanges)

    assert await conversations.clear(CHAT, CLEARED) is None
    assert not await conversations.erase(CHAT)
    assert memory.count(tables.message) == 2


async def test_raw_events_of_the_same_services_are_emptied_and_stay_known(memory: Memory) -> None:
    event = {"headers": {"a": "b"}, "body": b"hello", "received_at": 1.0}
    for number, (adapter, state) in enumerate(
        (("slack:claude", "done"), ("slack:claude", "new"), ("linear:claude", "done"))
    ):
        memory.add(tables.delivery, adapter=adapter, delivery_id=f"d{number}", state=state, **event)

    assert await memory.stores.open(ConversationChanges).clear(CHAT, CLEARED)

    kept = await memory.stores.deliveries.kept("slack:claude", limit=5)
    assert [(each.delivery_id, each.body) for each in kept] == [("d1", b"hello"), ("d0", b"{}")]
    (other,) = await memory.stores.deliveries.kept("linear:claude", limit=5)
    assert other.body == b"hello"
    assert memory.count(tables.place) == 2
