"""The record follows what other tables keep, each thing once; what is erased leaves it whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import insert, text

from app.clock import SystemClock
from app.features.conversations.store import ConversationChanges
from app.features.erasing.store.people import PersonStore
from app.features.erasing.store.purges import PurgeStore
from app.features.record.store import RecordFilter, RecordStore
from app.model.posts import PostSent
from app.model.record import Flaw, RecordRow, Verdict, verify, write_header, write_row
from app.model.types import Entry
from app.store import tables
from app.store.database import Database
from app.store.guarding import Guard, make_sealer
from app.store.record import following
from app.vault import Vault, vault_of
from tests.support.memory import open_stores
from tests.unit.features.conversations.test_store import CHAT, Memory

pytestmark = pytest.mark.anyio


class Desk(Memory):
    """A thread in which Ann asked an agent for something, and its record."""

    @property
    def record(self) -> RecordStore:
        return self.stores.open(RecordStore)

    async def begin(self) -> None:
        self.place(1, CHAT)
        self.session(1, 1, "claude")
        self.surface(1, 1, CHAT, "claude")
        await self.catch_up()
        self.message(1, 1)
        self.add(tables.turn, id=1, session=1, surface=1, state="prompted", created_at=1.0)
        self.add(tables.heard, message=1, session=1, turn=1)

    async def catch_up(self) -> None:
        while await self.record.follow():
            pass

    async def call(self, name: str, status: str, **data: Any) -> None:
        given = {"call": name, "kind": "execute", "status": status, **data}
        entry = Entry("tool", data.get("title", "Run"), "", given, 1, 1)
        await self.stores.transcript.append([entry])

    async def rows(self, **wanted: Any) -> list[RecordRow]:  # type: ignore[override]  # of the record
        await self.catch_up()
        found = await self.record.find(RecordFilter(**wanted), before=None, limit=500)
        return list(reversed(found))

    async def verify(self) -> Verdict:
        number, head = await self.record.head()
        lines = [write_header(number, head)]
        lines += [write_row(row) async for row in self.record.export(0, number)]
        return verify(lines)

    def end_turn(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(text("update turn set state = 'done' where id = 1"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_stores(tmp_path, SystemClock()) as (database, stores):
        yield Desk(database, stores)


PERSON = {"how": "person", "who": "Bob", "answer": "Allow once", "allowed": True}


def told(row: RecordRow, *names: str) -> tuple[str, ...]:
    return tuple(row.texts.get(name, "") for name in names)


async def test_a_record_begins_with_what_happens_from_then_on(desk: Desk) -> None:
    desk.place(1, CHAT)
    desk.session(1, 1, "claude")
    desk.surface(1, 1, CHAT, "claude")
    desk.add(tables.turn, id=1, session=1, surface=1, state="prompted", created_at=1.0)
    await desk.call("before", "completed")

    (first,) = await desk.rows()
    await desk.call("after", "completed")
    (_, second) = await desk.rows()

    assert (first.number, first.kind, first.texts) == (1, "begin", {})
    assert (second.kind, second.outcome) == ("call", "completed")


async def test_a_call_is_recorded_once_with_who_asked_and_who_allowed_it(desk: Desk) -> None:
    await desk.begin()
    await desk.call("c1", "pending")
    await desk.catch_up()
    await desk.call("c1", "in_progress", decided=PERSON)
    await desk.call("c1", "completed", decided=PERSON, input={"command": "make test"})
    await desk.call("c1", "completed", decided=PERSON)
    await desk.call(
        "c2", "completed", decided={"how": "rule", "rule": "allow read", "allowed": True}
    )
    await desk.call("c3", "failed", decided={"how": "rule", "rule": "deny rm", "allowed": False})
    await desk.call("c4", "failed", decided=PERSON | {"allowed": False})

    _, first, second, third = await desk.rows()

    assert told(first, "agent", "place", "asked_id", "decided_by") == (
        *("claude", "slack:C1:1.1", "slack:ann", "Bob"),
    )
    assert (first.session, first.turn, first.texts["what"]) == (1, 1, "Run\nmake test")
    assert (second.kind, told(second, "rule")) == ("call", ("allow read",))
    assert (third.kind, third.outcome, told(third, "rule")) == ("decision", "refused", ("deny rm",))
    assert desk.count(tables.record_pending) == 0


async def test_a_call_that_its_turn_cut_off_is_recorded_as_unfinished(desk: Desk) -> None:
    await desk.begin()
    await desk.call("c1", "in_progress", decided=PERSON)
    assert len(await desk.rows()) == 1

    desk.end_turn()
    _, row = await desk.rows()

    assert (row.kind, row.outcome, told(row, "decided_by")) == ("call", "unfinished", ("Bob",))
    assert len(await desk.rows()) == 2


async def test_a_call_names_files_and_commands_once(desk: Desk) -> None:
    await desk.begin()
    await desk.call("c1", "completed", title="Write a.txt", locations=["/somewhere/a.txt"])
    await desk.call("c2", "completed", title="Edit", locations=["/somewhere/b.txt"])
    await desk.call("c3", "completed", title="Run `true`", input={"command": "true"})
    await desk.call("c4", "completed", title="Look around", input={"command": "ls -l /"})

    _, *rows = await desk.rows()

    assert [row.texts["what"] for row in rows] == [
        "Write a.txt",
        "Edit\n/somewhere/b.txt",
        "Run `true`",
        "Look around\nls -l /",
    ]


async def test_a_post_without_a_session_names_its_agent_and_place(desk: Desk) -> None:
    await desk.begin()
    named = {"service": "slack", "external": "C2:1.1", "agent": "codex", "marker": "m"}
    row = {"id": 1, "key": "command:1", "content": {"kind": "notice"}, "created_at": 1.0}
    desk.add(tables.post, **row, **named, state="done")

    _, posted = await desk.rows()

    assert told(posted, "agent", "place", "what") == ("codex", "slack:C2:1.1", "notice")


async def test_a_post_is_recorded_when_it_has_arrived(desk: Desk) -> None:
    await desk.begin()
    content = {"kind": "turn", "text": "private words"}
    named = {"service": "slack", "external": "C1:1.1", "agent": "claude", "marker": "m"}
    ids = {"id": 1, "key": "turn:1", "session": 1, "turn": 1}
    desk.add(tables.post, **ids, **named, content=content, created_at=1.0)
    assert len(await desk.rows()) == 1

    await desk.stores.posts.sent(1, PostSent("1700.1"), final=False)
    assert len(await desk.rows()) == 1
    await desk.stores.posts.sent(1, PostSent("1700.1"), final=True)
    _, row = await desk.rows()

    assert (row.kind, row.outcome, told(row, "what", "ref")) == ("post", "sent", ("turn", "1700.1"))
    assert (row.turn, told(row, "asked_id")) == (1, ("slack:ann",))


GRANT = {
    "session": 1,
    "generation": 1,
    "kind": "execute",
    "extent": "command",
    "subject": "make ann-private-thing",
    "digest": "d",
    "granted_by": "Ann",
    "speaker": "ann",
    "granted_at": 1.0,
    "expires_at": 9e9,
}


async def test_a_grant_and_its_end_are_recorded(desk: Desk) -> None:
    await desk.begin()
    desk.add(tables.grant, id=1, **GRANT)
    await desk.catch_up()
    await desk.stores.grants.end(1, "Cleo")

    _, given, ended = await desk.rows()

    assert (given.outcome, ended.outcome) == ("granted", "taken back")
    assert told(given, "decided_by", "decided_id") == ("Ann", "slack:ann")
    assert told(ended, "decided_by", "ref") == ("Cleo", "grant:1")
    assert "make ann-private-thing" in given.texts["what"]


async def test_a_push_and_its_pull_request_lead_to_all_that_their_turn_did(desk: Desk) -> None:
    await desk.begin()
    row = {"session": 1, "number": 1, "name": "acme/widget", "url": "u", "way": "branch"}
    desk.add(tables.checkout, **row, branch="agent/fix")
    await desk.call("c1", "completed", decided=PERSON, title="make")
    commit, link = "a1b2c3d4" * 5, "https://github.com/acme/widget/pull/7"
    for _ in range(2):
        await desk.stores.checkouts.pushed(1, 1, commit)
        await desk.stores.checkouts.told(1, 1, commit, link)

    by_commit, by_pull = await desk.rows(commit="A1B2C3D"), await desk.rows(pull=link)

    assert [each.kind for each in by_commit] == ["push", "pull request", "call"]
    assert by_pull == by_commit
    assert told(by_commit[0], "repository", "what", "ref") == ("acme/widget", "agent/fix", commit)
    assert [each.outcome for each in by_commit] == ["pushed", "opened", "completed"]
    assert await desk.rows(commit="b1b2c3d") == []
    assert [each.kind for each in await desk.rows(person="bob")] == ["call"]
    assert await desk.rows(person="slack:ann", kind="push") == by_commit[:1]


async def test_each_thing_is_recorded_once_when_many_write_and_several_follow(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "AT_ONCE", 7)
    await desk.begin()
    other = Database(desk.database.engine.url.render_as_string(hide_password=False))
    other.open()
    try:
        elsewhere = RecordStore(other, SystemClock().now)

        async def follow(record: RecordStore, done: asyncio.Event) -> None:
            while not done.is_set():
                await record.follow()

        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for record in (desk.record, elsewhere):
                tasks.create_task(follow(record, done))
            async with asyncio.TaskGroup() as writers:
                for number in range(60):
                    writers.create_task(desk.call(f"c{number}", "completed", title=f"t{number}"))
            done.set()
        rows = await desk.rows(kind="call")
    finally:
        other.close()

    assert sorted(row.texts["what"] for row in rows) == sorted(f"t{number}" for number in range(60))
    assert (await desk.verify()).flaw is None


async def test_a_known_secret_is_not_recorded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(Vault({"hunter2-hunter2"}), lambda: make_sealer(SecretStr("k" * 32)))
    await desk.begin()
    desk.add(tables.grant, id=1, **{**GRANT, "subject": "curl -u hunter2-hunter2"})
    monkeypatch.setattr(desk.database.engine.dialect, "agent_bridge_guard", guard, raising=False)

    _, row = await desk.rows()

    assert "curl -u" in row.texts["what"]
    assert "hunter2-hunter2" not in str(row)
    assert (await desk.verify()).flaw is None


async def fill(desk: Desk) -> None:
    await desk.begin()
    desk.add(tables.grant, id=1, **GRANT)
    desk.add(tables.grant, id=2, **{**GRANT, "granted_by": "Bob", "speaker": "bob", "digest": "e"})
    await desk.call("c1", "completed", decided=PERSON, title="deploy the-leaked-word now")
    await desk.catch_up()


def stored(desk: Desk) -> str:
    return str(Memory.rows(desk, "select * from record"))


async def test_a_purge_takes_texts_and_the_record_still_proves_itself(desk: Desk) -> None:
    await fill(desk)

    await desk.stores.open(PurgeStore).redact(vault_of("the-leaked-word"))

    assert "the-leaked-word" not in stored(desk)
    *_, last = await desk.rows()
    (call,) = await desk.rows(kind="call")
    assert (last.kind, last.outcome, last.erases) == ("erasure", "purged", {"what": [call.number]})
    assert told(call, "decided_by", "what") == ("Bob", "")
    assert (await desk.verify()).flaw is None


async def test_a_person_who_is_forgotten_leaves_the_record_and_it_proves_itself(
    desk: Desk,
) -> None:
    await fill(desk)
    people = desk.stores.open(PersonStore)
    person = await people.trace("slack", "ann")
    assert person is not None

    await people.forget(person)

    rows = await desk.rows()
    assert "slack:ann" not in stored(desk)
    assert not any("Ann" in (*row.texts.values(),) for row in rows)
    assert "Bob" in [row.texts.get("decided_by") for row in rows]
    assert {row.outcome for row in rows if row.kind == "erasure"} == {"forgotten"}
    assert (await desk.verify()).flaw is None


async def test_a_deleted_conversation_leaves_who_did_what_kind_of_thing(desk: Desk) -> None:
    await fill(desk)
    await desk.call("c2", "completed", decided=PERSON, title="not yet recorded-word")
    desk.end_turn()

    assert await desk.stores.open(ConversationChanges).erase(CHAT)

    calls = await desk.rows(kind="call")
    assert [told(row, "decided_by", "asked_id", "what") for row in calls] == [
        ("Bob", "slack:ann", "")
    ] * 2
    assert "recorded-word" not in stored(desk)
    assert (await desk.verify()).flaw is None


async def test_what_goes_without_a_word_of_it_is_found(desk: Desk) -> None:
    await fill(desk)
    with desk.database.engine.begin() as connection:
        connection.execute(text("update record set what = 'harmless' where number = 3"))
    changed = await desk.verify()
    with desk.database.engine.begin() as connection:
        connection.execute(text("delete from record where number = 3"))
    removed = await desk.verify()

    assert (changed.flaw, changed.number) == (Flaw.CHANGED, 3)
    assert (removed.flaw, removed.number) == (Flaw.REMOVED, 3)


async def test_an_ask_is_recorded_with_who_answered_it(desk: Desk) -> None:
    await desk.begin()
    options = [{"id": "no", "name": "Reject", "kind": "reject_once"}]
    row = {"session": 1, "turn": 1, "generation": 1, "kind": "permission", "call": "c1"}
    with desk.database.engine.begin() as connection:
        connection.execute(
            insert(tables.ask),
            {"id": 1, **row, "title": "Run it?", "subject": "rm -r x", "options": options}
            | {"deadline": 9e9, "created_at": 1.0},
        )
    assert len(await desk.rows()) == 1

    assert await desk.stores.asks.answer(1, "no", "Bob", speaker="U2")
    _, row_ = await desk.rows()

    assert (row_.kind, row_.outcome) == ("decision", "rejected")
    assert told(row_, "decided_by", "decided_id", "asked_id", "what", "ref") == (
        *("Bob", "slack:U2", "slack:ann", "rm -r x", "ask:1"),
    )
