"""Grants are erased with what they belong to: a conversation, a person, a text, and in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.features.conversations.store import ConversationChanges
from app.features.erasing.store.people import PersonStore
from app.features.erasing.store.purges import PurgeStore
from app.model.posts import Note, NoteCode
from app.store import tables
from app.store.upkeep import DAY_SECONDS, forget
from app.vault import vault_of
from tests.support.memory import open_stores
from tests.unit.features.conversations.test_store import CHAT, Memory

pytestmark = pytest.mark.anyio


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Open a store with a thread in which Ann and Bob granted something each."""
    with open_stores(tmp_path, SystemClock()) as (database, stores):
        made = Memory(database, stores)
        made.place(1, CHAT)
        made.session(1, 1, "claude")
        made.surface(1, 1, CHAT, "claude")
        made.message(1, 1)
        for number, who in ((1, "ann"), (2, "bob")):
            made.add(
                tables.grant,
                id=number,
                session=1,
                generation=1,
                kind="execute",
                extent="command",
                subject=f"make {who}-private-thing",
                digest=who,
                granted_by=who.title(),
                speaker=who,
                granted_at=1.0,
                expires_at=DAY_SECONDS * number,
            )
        yield made


async def test_grants_go_with_what_was_said_and_with_the_conversation(memory: Memory) -> None:
    assert await memory.stores.open(ConversationChanges).clear(CHAT, Note(NoteCode.CLEARED, "Ann"))

    assert memory.count(tables.grant) == 0


async def test_grants_do_not_keep_a_conversation_from_being_deleted(memory: Memory) -> None:
    assert await memory.stores.open(ConversationChanges).erase(CHAT)

    assert (memory.count(tables.grant), memory.count(tables.session)) == (0, 0)


async def test_what_a_person_granted_goes_when_they_are_forgotten(memory: Memory) -> None:
    people = memory.stores.open(PersonStore)
    person = await people.trace("slack", "ann")
    assert person is not None

    await people.forget(person)

    assert memory.rows('select speaker from "grant"') == [("bob",)]


async def test_a_grant_about_a_text_that_is_purged_ends_with_it(memory: Memory) -> None:
    await memory.stores.open(PurgeStore).redact(vault_of("ann-private-thing"))

    assert memory.rows('select subject from "grant"') == [("make bob-private-thing",)]


async def test_grants_that_ended_long_ago_are_forgotten(memory: Memory) -> None:
    await forget(memory.database, now=DAY_SECONDS * 31.5, days=30)

    assert memory.rows('select speaker from "grant"') == [("bob",)]
