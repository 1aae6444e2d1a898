"""Finds what is stored of a person, and deletes what they said, decided and planned."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    delete,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from app.features.erasing.model import FORGOTTEN, Marks, Person
from app.features.erasing.store.purges import put_kept, reach_member
from app.store.commits.admission import begin_afresh
from app.store.database import Store, write
from app.store.guarding import Kept
from app.store.record import erase_person
from app.store.sealed import forget_words
from app.store.tables import (
    ask,
    delegation,
    delivery,
    grant,
    heard,
    message,
    place,
    schedule,
    sealed,
    session,
    spending,
    transcript,
    turn,
)

MOST = 50
"""People that a search lists."""
LEAST_LETTERS = 3
"""Letters of a name that is looked for in texts: a shorter one is part of ordinary ones."""
LEAST_LINE = 16
"""Characters of a line that is looked for where others may have quoted it."""
_PREFIX = "forgetting:"
_IDS: tuple[Column[Any], ...] = (
    message.c.speaker_id,
    message.c.speaker_number,
    ask.c.speaker,
    grant.c.speaker,
    delegation.c.person_id,
    delegation.c.person_number,
)
_NAMES: tuple[Column[Any], ...] = (
    transcript.c.speaker,
    ask.c.answered_by,
    grant.c.granted_by,
    grant.c.ended_by,
    delegation.c.person_name,
)


class PersonStore(Store):
    """People who said something, and those who are to be forgotten."""

    async def find(self, words: str) -> Sequence[Person]:
        """List the people whose name or id has these words."""
        return await self._database.read(lambda connection: _find(connection, words))

    async def trace(self, service: str, who: str) -> Person | None:
        """Find what is known of a person; None if they have said nothing."""
        return await self._database.read(lambda connection: _trace(connection, service, who))

    @write
    def keep(self, connection: Connection, person: Person) -> None:
        """Store, sealed, that a person is to be forgotten."""
        stored = {
            "service": person.service,
            "messages": person.messages,
            "until": person.until,
            **{name: sorted(getattr(person, name)) for name in _SETS},
        }

        name = f"{_PREFIX}{person.pseudonym}"
        put_kept(connection, name, stored, self._now())

    async def unfinished(self) -> Sequence[Person]:
        """List the people who are not forgotten yet."""
        rows = await self._database.all(
            select(sealed.c.name, type_coerce(sealed.c.value, Kept).label("value")).where(
                sealed.c.name.startswith(_PREFIX)
            )
        )
        return [_person_of(row.name, row.value) for row in rows if row.value.startswith("{")]

    @write
    def forget(self, connection: Connection, person: Person) -> int:
        """Delete what a person said, decided and planned; returns how many rows were changed."""
        return _forget(connection, person, self._now())

    @write
    def reach(self, connection: Connection, person: Person, member: str) -> None:
        """Note that a member that was away has cleaned its machine; the last one ends it."""
        name = f"{_PREFIX}{person.pseudonym}"
        if not reach_member(connection, name, member, self._now()):
            connection.execute(delete(sealed).where(sealed.c.name == name))

    @write
    def done(self, connection: Connection, person: Person) -> None:
        """Forget also that the person was to be forgotten."""
        connection.execute(delete(sealed).where(sealed.c.name == f"{_PREFIX}{person.pseudonym}"))


_SETS = ("lines", "ids", "names", "sessions", "conversations", "uploads", "away")


def _person_of(name: str, value: str) -> Person:
    stored = json.loads(value)
    sets: dict[str, Any] = {each: frozenset(stored.get(each, ())) for each in _SETS}
    return Person(
        service=stored["service"],
        pseudonym=name.removeprefix(_PREFIX),
        messages=stored["messages"],
        until=stored.get("until", 0.0),
        **sets,
    )


def _find(connection: Connection, words: str) -> list[Person]:
    spoken = (
        select(
            place.c.service,
            message.c.speaker_id,
            transcript.c.speaker,
            func.count().label("messages"),
        )
        .join(place, place.c.id == message.c.place)
        .join(transcript, transcript.c.id == message.c.id)
        .where(
            or_(
                transcript.c.speaker.icontains(words, autoescape=True),
                message.c.speaker_id.icontains(words, autoescape=True),
            ),
            message.c.speaker_kind == "person",
        )
        .group_by(place.c.service, message.c.speaker_id, transcript.c.speaker)
        .order_by(place.c.service, message.c.speaker_id)
        .limit(MOST)
    )
    return [
        Person(row.service, frozenset({row.speaker_id}), frozenset({row.speaker}), "", row.messages)
        for row in connection.execute(spoken)
    ]


def _trace(connection: Connection, service: str, who: str) -> Person | None:
    spoken = (
        select(
            message.c.id,
            message.c.speaker_id,
            message.c.speaker_number,
            message.c.files,
            transcript.c.speaker,
            transcript.c.text,
            message.c.edited,
        )
        .join(place, place.c.id == message.c.place)
        .join(transcript, transcript.c.id == message.c.id)
        .where(place.c.service == service)
    )
    is_them = or_(message.c.speaker_id == who, message.c.speaker_number == who)
    rows = connection.execute(spoken.where(is_them)).all()
    if not rows:
        return None
    ids = {row.speaker_id for row in rows} | {row.speaker_number for row in rows} - {""}
    told = select(heard.c.session).where(heard.c.message.in_([row.id for row in rows])).distinct()
    sessions = set(connection.execute(told).scalars())
    called = select(session.c.acp_session_id).where(
        session.c.id.in_(sessions), session.c.acp_session_id.is_not(None)
    )
    others = connection.execute(spoken.where(message.c.speaker_id.not_in(ids))).all()
    taken = {row.speaker for row in others}
    names = {row.speaker for row in rows if len(row.speaker) >= LEAST_LETTERS} - taken
    return Person(
        service=service,
        ids=frozenset(ids),
        names=frozenset(names),
        pseudonym=f"person-{secrets.token_hex(4)}",
        messages=len(rows),
        lines=frozenset(_lines(rows)),
        sessions=frozenset(sessions),
        conversations=frozenset(connection.execute(called).scalars()),
        uploads=frozenset(_uploads(rows) - _uploads(others)),
    )


def _lines(rows: Sequence[Any]) -> Iterator[str]:
    for row in rows:
        for line in f"{row.text}\n{row.edited or ''}".splitlines():
            if len(line.strip()) >= LEAST_LINE:
                yield line.strip()


def _uploads(rows: Sequence[Any]) -> set[str]:
    urls = (str(file["url"]) for row in rows for file in row.files)
    return {url.partition("/")[0] for url in urls}


def _forget(connection: Connection, person: Person, now: float) -> int:
    said = connection.execute(
        select(message.c.id, message.c.place)
        .join(place, place.c.id == message.c.place)
        .where(place.c.service == person.service, message.c.speaker_id.in_(person.ids))
    ).all()
    numbers = [row.id for row in said]
    told = select(heard.c.turn).where(heard.c.message.in_(numbers), heard.c.turn.is_not(None))
    _blank(connection, turn.c.id.in_(told), turn.c.prompt)
    connection.execute(
        update(transcript)
        .where(transcript.c.id.in_(numbers))
        .values(text=FORGOTTEN, speaker=person.pseudonym, data={})
    )
    empty: dict[str, Any] = {"link": "", "files": [], "pointed": "", "context": "", "edited": None}
    connection.execute(update(message).where(message.c.id.in_(numbers)).values(empty))
    # A conversation is called after its first words.
    _blank(connection, place.c.id.in_({row.place for row in said}), place.c.title)
    words = update(ask).where(ask.c.speaker.in_(person.ids), ask.c.free_text)
    connection.execute(words.values(answer=FORGOTTEN))
    theirs = (schedule.c.service == person.service, schedule.c.creator_id.in_(person.ids))
    connection.execute(delete(schedule).where(*theirs))
    # What they let agents do is theirs to say, and no longer said.
    connection.execute(delete(grant).where(grant.c.speaker.in_(person.ids)))
    for column in _IDS:
        _put(connection, column, person.ids, person.pseudonym)
    for column in _NAMES:
        _put(connection, column, person.names, person.pseudonym)
    accounts = [f"{person.service}:{each}" for each in person.ids]
    connection.execute(
        delete(spending).where(spending.c.share == "person", spending.c.name.in_(accounts))
    )
    erase_person(connection, accounts, person.names, now)
    for number in sorted(person.sessions):
        begin_afresh(connection, number)
    forget_words(connection)
    _empty_deliveries(connection, person)
    return len(numbers)


def _blank(connection: Connection, which: ColumnElement[bool], column: Column[Any]) -> None:
    connection.execute(update(column.table).where(which).values({column.name: ""}))


def _put(connection: Connection, column: Column[Any], known: frozenset[str], new: str) -> None:
    change = update(column.table).where(column.in_(known), column != "")
    connection.execute(change.values({column.name: new}))


def _empty_deliveries(connection: Connection, person: Person) -> None:
    """Empty the settled events that name the person; their ids stay."""
    marks = Marks(person)
    settled = select(delivery.c.seq, delivery.c.body, delivery.c.headers).where(
        delivery.c.adapter.startswith(f"{person.service}:"), delivery.c.state != "new"
    )
    numbers = [
        row.seq
        for row in connection.execute(settled.execution_options(yield_per=MOST))
        if marks.contains(row.body.decode(errors="replace"))
        or marks.redact_json(row.headers) != row.headers
    ]
    empty = {"headers": {}, "body": b"{}", "reason": ""}
    connection.execute(update(delivery).where(delivery.c.seq.in_(numbers)).values(empty))
