"""Notes in the store: kept as codes, read as words; rows of an older release have the words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from app.model.keys import PlaceKey
from app.model.posts import Note, NoteCode
from app.model.types import Entry
from app.store.commits.endings import end_waiting
from app.store.database import Database, sqlite_url
from app.store.stores import Stores
from app.store.tables import post, transcript, turn
from bench.history import fill, make

HERE = PlaceKey("web", "thread-1")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    make(tmp_path / "data")
    fill(tmp_path / "data", 1)
    database = Database(sqlite_url(tmp_path / "data"))
    database.open()
    yield database
    database.close()


async def test_a_note_is_kept_as_its_code_and_read_as_words(database: Database) -> None:
    stores = Stores.on(database, lambda: 0.0)
    note = Note(NoteCode.MESSAGE_CHANGED, "Ann", "other words")

    await stores.transcript.append([Entry("notice", note=note, session=1, turn=1)])

    kept = select(transcript.c.text).order_by(transcript.c.id.desc()).limit(1)
    (read,) = (await stores.transcript.read_place(HERE, after=2, limit=9))[-1:]
    assert (await database.all(kept))[0].text == "message_changed"
    assert (read.note, read.text) == (note, "Ann edited a message: other words")


async def test_a_post_keeps_why_its_turn_ended_as_a_code(database: Database) -> None:
    stores = Stores.on(database, lambda: 0.0)
    with database.engine.begin() as connection:
        connection.execute(update(post).values(state="open"))
        end_waiting(connection, 1, Note(NoteCode.HANDED_OVER, about="codex"), 0.0)

    shown = stores.posts.of_turn(1)
    (row,) = await database.all(select(post.c.content))
    assert shown is not None
    assert (shown.content.note, row.content["note"]) == ("Handed over to codex.", "")
    assert row.content["reason"]["code"] == "handed_over"


async def test_words_that_an_older_release_kept_still_show(database: Database) -> None:
    stores = Stores.on(database, lambda: 0.0)
    old = "The bridge was cut off and carries on."
    with database.engine.begin() as connection:
        content = connection.execute(select(post.c.content)).scalar_one()
        content = {key: value for key, value in content.items() if key != "reason"}
        connection.execute(update(post).values(content=content | {"note": old}))
        connection.execute(update(turn).values(error=old))
        last = select(func.max(transcript.c.id)).scalar_subquery()
        change = update(transcript).where(transcript.c.id == last)
        connection.execute(change.values(kind="notice", text=old, data={"end": "failed"}))

    shown, ended = stores.posts.of_turn(1), stores.turns.turn(1)
    (read,) = (await stores.transcript.read_place(HERE, after=0, limit=9))[-1:]
    assert shown is not None
    assert ended is not None
    assert (shown.content.note, ended.error, read.text) == (old, old, old)


async def test_the_error_of_a_turn_that_was_cut_off_twice_is_read_as_words(
    database: Database,
) -> None:
    stores = Stores.on(database, lambda: 0.0)
    with database.engine.begin() as connection:
        connection.execute(update(turn).values(state="prompted", cuts=1))

    await stores.turns.recover()

    ended = stores.turns.turn(1)
    assert ended is not None
    assert ended.error.startswith("The bridge restarted twice")
