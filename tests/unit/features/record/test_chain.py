"""An export of the record is checked alone: every way to change it is found, and named."""

from __future__ import annotations

import json
from dataclasses import replace
from time import process_time
from typing import Any

import pytest

from app.model.record import (
    ORIGIN,
    Flaw,
    RecordEvent,
    RecordKind,
    RecordRow,
    chain,
    digest_of,
    hash_of,
    read_row,
    verify,
    write_header,
    write_row,
)


def make(count: int) -> list[RecordRow]:
    """Make a record of so many rows."""
    rows: list[RecordRow] = []
    for number in range(1, count + 1):
        event = RecordEvent(
            kind=RecordKind.CALL,
            source=f"call:{number}",
            at=1_700_000_000.1234 + number,
            outcome="completed",
            session=1,
            turn=number,
            agent="claude",
            asked_by="Ann Lee",
            asked_id="slack:U1",
            what=f"make tëst {number}",
        )
        rows.append(chain(event, number, rows[-1].hash if rows else ORIGIN))
    return rows


def export(rows: list[RecordRow], announced: int | None = None) -> list[str]:
    count = len(rows) if announced is None else announced
    head = rows[-1].hash if rows else ORIGIN
    return [write_header(count, head), *map(write_row, rows)]


def found(lines: list[str], earlier: list[str] | None = None) -> tuple[Flaw | None, int]:
    verdict = verify(lines, earlier)
    return verdict.flaw, verdict.number


def changed(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values})


def rehash(row: RecordRow, **values: Any) -> RecordRow:
    new = replace(row, **values)
    return replace(new, hash=hash_of(new))


def test_a_whole_export_is_right_and_a_row_reads_as_it_was_written() -> None:
    rows = make(20)

    verdict = verify(export(rows))

    assert (verdict.rows, verdict.head, verdict.flaw) == (20, rows[-1].hash, None)
    assert [read_row(write_row(row)) for row in rows] == rows
    assert verify(export([])).flaw is None


@pytest.mark.parametrize(
    "values",
    [
        {"at": 1.0},
        {"kind": "post"},
        {"outcome": "failed"},
        {"source": "call:99"},
        {"session": 2},
        {"turn": None},
        {"previous": "f" * 64},
        {"hash": "f" * 64},
        {"erases": {"what": [1]}},
        {"texts": {}},
    ],
    ids=str,
)
def test_a_changed_row_is_named(values: dict[str, Any]) -> None:
    lines = export(make(9))
    lines[5] = changed(lines[5], **values)

    assert found(lines) == (Flaw.CHANGED, 5)


@pytest.mark.parametrize("name", ["agent", "asked_by", "asked_id", "what"])
def test_a_changed_text_is_named(name: str) -> None:
    lines = export(make(9))
    row = json.loads(lines[5])
    row["texts"][name]["text"] = "Bob"
    lines[5] = json.dumps(row)

    assert found(lines) == (Flaw.CHANGED, 5)


def test_a_changed_row_with_a_hash_that_fits_is_named() -> None:
    rows = make(9)
    rows[4] = rehash(rows[4], outcome="failed")

    assert found(export(rows)) == (Flaw.CHANGED, 5)


@pytest.mark.parametrize("number", [1, 5, 8])
def test_a_removed_row_is_named(number: int) -> None:
    rows = make(9)
    del rows[number - 1]

    assert found(export(rows)) == (Flaw.REMOVED, number)


def test_rows_removed_at_the_end_are_named() -> None:
    assert found(export(make(9)[:7], announced=9)) == (Flaw.CUT_OFF, 8)


def test_a_removed_row_is_named_when_the_others_were_numbered_again() -> None:
    rows = make(9)
    del rows[4]
    renumbered = [*rows[:4], *(replace(row, number=row.number - 1) for row in rows[4:])]

    assert found(export(renumbered)) == (Flaw.REMOVED, 5)


def test_rows_in_another_order_are_named() -> None:
    rows = make(9)
    rows[3], rows[6] = rows[6], rows[3]

    assert found(export(rows)) == (Flaw.REORDERED, 4)


def test_an_inserted_row_is_named_with_its_number_taken_or_the_others_numbered_again() -> None:
    rows = make(9)
    forged = rehash(rows[5], number=6, previous=rows[4].hash, source="forged")
    renumbered = [
        *rows[:5],
        forged,
        *(replace(row, number=row.number + 1) for row in rows[5:]),
    ]

    assert found(export([*rows[:5], forged, *rows[5:]])) == (Flaw.INSERTED, 6)
    assert found(export([*rows[:5], rows[4], *rows[5:]])) == (Flaw.INSERTED, 5)
    assert found(export(renumbered)) == (Flaw.INSERTED, 6)


def erased(row: RecordRow, name: str) -> RecordRow:
    digest = digest_of(name, row.salts[name], row.texts[name])
    return replace(
        row,
        texts={each: text for each, text in row.texts.items() if each != name},
        salts={each: salt for each, salt in row.salts.items() if each != name},
        digests={name: digest},
    )


def test_a_missing_text_is_right_only_if_a_later_row_names_it() -> None:
    rows = make(9)
    rows[4] = erased(rows[4], "asked_by")
    told = RecordEvent(
        kind=RecordKind.ERASURE, source="erasure:9", at=1.0, erases={"asked_by": [5]}
    )
    other = replace(told, erases={"what": [5]})

    assert found(export(rows)) == (Flaw.TAKEN, 5)
    assert found(export([*rows, chain(told, 10, rows[-1].hash)])) == (None, 0)
    assert found(export([*rows, chain(other, 10, rows[-1].hash)])) == (Flaw.TAKEN, 5)
    assert "Ann" not in write_row(rows[4])


def test_a_row_cannot_excuse_what_goes_after_it() -> None:
    rows = make(3)
    told = RecordEvent(kind=RecordKind.ERASURE, source="e", at=1.0, erases={"what": [5]})
    rows.append(chain(told, 4, rows[-1].hash))
    rows.append(
        chain(RecordEvent(kind=RecordKind.CALL, source="c", at=1.0, what="x"), 5, rows[-1].hash)
    )
    rows[4] = erased(rows[4], "what")

    assert found(export(rows)) == (Flaw.TAKEN, 5)


def test_an_earlier_export_shows_that_the_whole_record_was_written_again() -> None:
    rows, others = make(9), make(9)
    earlier = export(rows[:6])

    assert found(export(rows), earlier) == (None, 0)
    assert found(export([*rows[:5], erased(rows[5], "what")]), earlier) == (Flaw.TAKEN, 6)
    # Salts are random: the same words give another chain.
    assert found(export(others)) == (None, 0)
    assert found(export(others), earlier) == (Flaw.DIFFERENT, 1)
    assert found(export(rows[:4]), earlier) == (Flaw.CUT_OFF, 5)


@pytest.mark.parametrize(
    ("at", "line"),
    [
        (0, "not json"),
        (0, '{"record": "agent-bridge", "format": 2, "rows": 1}'),
        (3, "{}"),
        (3, "[]"),
        (3, '{"number": "3"}'),
        (3, "["),
        (3, "[" * 100_000),
    ],
)
def test_a_line_that_is_no_row_is_named_by_its_place_in_the_file(at: int, line: str) -> None:
    lines = export(make(5))
    lines[at] = line

    assert found(lines) == (Flaw.UNREADABLE, at + 1)


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_checked_within_seconds() -> None:
    lines = export(make(100_000))
    broken = [*lines]
    broken[99_999] = changed(lines[99_999], outcome="failed")

    begun = process_time()
    verdict = verify(lines)
    took = process_time() - begun

    assert (verdict.rows, verdict.flaw) == (100_000, None)
    # It looked at all of them.
    assert found(broken) == (Flaw.CHANGED, 99_999)
    assert took < 10.0, f"{took:.1f} s of CPU"
