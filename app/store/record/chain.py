"""Adds rows to the record and takes texts out of it, inside the caller's commit.

One commit at a time is made on a database, so the last row that is read here stays the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from app.model.record import (
    ORIGIN,
    TEXTS,
    RecordEvent,
    RecordKind,
    RecordRow,
    chain,
    digest_of,
)
from app.model.text import clean_text
from app.store.guarding import guard_of
from app.store.tables import (
    grant,
    post,
    record,
    record_pending,
    record_position,
    transcript,
)

TEXT_CHARACTERS = 2_000
"""What a row keeps of one text: a long command is still recognised."""
SOURCES = {"transcript": transcript, "grant": grant, "post": post}
"""The tables that are followed, by the numbers of their rows."""

_LAST = select(record.c.number, record.c.hash).order_by(record.c.number.desc()).limit(1)
_ADD = insert(record)
_KNOWN = select(record.c.source).where(record.c.source.in_(bindparam("names", expanding=True)))


def append(connection: Connection, events: Sequence[RecordEvent]) -> None:
    """Add what happened to the record, once each: an event whose source is there is left out.

    A known secret does not get into it. The first event of a database begins its record.
    """
    names = [event.source for event in events]
    known = set(connection.execute(_KNOWN, {"names": names}).scalars()) if names else set()
    new = {event.source: event for event in events if event.source not in known}
    if not new:
        return
    number, head = _find_last(connection, min(event.at for event in new.values()))
    rows = []
    for event in new.values():
        number += 1
        row = chain(_clean(connection, event), number, head)
        head = row.hash
        rows.append(_columns(row))
    connection.execute(_ADD, rows)


def begin(connection: Connection, now: float) -> None:
    """Begin the record if there is none: with what happens from now on."""
    _find_last(connection, now)


def _find_last(connection: Connection, now: float) -> tuple[int, str]:
    """Return the number and the hash of the last row; of a first one if there is none."""
    last = connection.execute(_LAST).first()
    if last is not None:
        return last.number, last.hash
    for name, table in SOURCES.items():
        latest = connection.execute(select(func.max(table.c.id))).scalar() or 0
        connection.execute(insert(record_position), {"source": name, "number": latest})
    unfinished = [
        *(("post", each) for each in _numbers(connection, post, post.c.state.in_(UNSENT))),
        *(("grant", each) for each in _numbers(connection, grant, grant.c.ended_at.is_(None))),
    ]
    if unfinished:
        waits = [
            {"name": f"{source}:{number}", "source": source, "number": number}
            for source, number in unfinished
        ]
        connection.execute(insert(record_pending), waits)
    first = chain(RecordEvent(kind=RecordKind.BEGIN, source="begin", at=now), 1, ORIGIN)
    connection.execute(_ADD, [_columns(first)])
    return first.number, first.hash


UNSENT = ("new", "open", "closing")


def _numbers(connection: Connection, table: Any, which: Any) -> list[int]:
    return list(connection.execute(select(table.c.id).where(which).order_by(table.c.id)).scalars())


def _clean(connection: Connection, event: RecordEvent) -> RecordEvent:
    """Bring texts into the form that the database keeps: it is what the hash covers."""
    guard = guard_of(connection)
    redact = clean_text if guard is None else guard.vault.redact
    texts: dict[str, Any] = {
        name: redact(clean_text(text))[:TEXT_CHARACTERS] for name, text in event.texts.items()
    }
    return replace(event, **texts)


def _columns(row: RecordRow) -> dict[str, Any]:
    columns = asdict(row)
    texts = columns.pop("texts")
    return {**columns, **{name: texts.get(name) for name in TEXTS}}


def row_of(row: Row[Any]) -> RecordRow:
    """Read a row of the record."""
    texts = {name: text for name in TEXTS if (text := getattr(row, name)) is not None}
    names = ("number", "at", "kind", "source", "outcome", "session", "turn")
    more = ("salts", "digests", "erases", "previous", "hash")
    return RecordRow(texts=texts, **{name: getattr(row, name) for name in (*names, *more)})


def erase(
    connection: Connection,
    texts: Mapping[int, Iterable[str]],
    why: Literal["purged", "forgotten", "deleted"],
    now: float,
) -> int:
    """Take texts out of rows, by the numbers of rows, and record that; returns how many rows.

    The digest of each stays, so that the chain holds.
    """
    erases: dict[str, list[int]] = {}
    for number in sorted(texts):
        here = record.c.number == number
        row = row_of(connection.execute(select(record).where(here)).one())
        gone = {name: row.texts[name] for name in texts[number] if name in row.texts}
        if not gone:
            continue
        digests = {name: digest_of(name, row.salts[name], text) for name, text in gone.items()}
        change = {
            **dict.fromkeys(gone),
            "salts": {name: salt for name, salt in row.salts.items() if name not in gone},
            "digests": {**row.digests, **digests},
        }
        connection.execute(update(record).where(here).values(change))
        for name in gone:
            erases.setdefault(name, []).append(number)
    touched = {number for numbers in erases.values() for number in numbers}
    if touched:
        last, _ = _find_last(connection, now)
        # Nothing is erased twice, so the row that it follows tells it apart.
        told = RecordEvent(
            kind=RecordKind.ERASURE,
            source=f"erasure:{last}",
            at=now,
            outcome=why,
            erases=erases,
        )
        append(connection, [told])
    return len(touched)
