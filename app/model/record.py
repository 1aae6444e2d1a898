"""Chains the record: the form of its rows, their hashes, and the check of an export; pure.

The hash of a row covers the hash of the row before it. Each text enters by a digest with a salt of
its own: a text can go together with its salt, and the chain still holds. A later row names every
text that has gone; one that no row names was taken away by someone else.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

FORMAT: Final = 1
"""The version of the export; another one is refused."""
ORIGIN: Final = "0" * 64
"""What the first row has for the hash of the row before it."""
SALT_BYTES: Final = 16
"""Enough that a name cannot be found by trying names."""
SHIFT: Final = 1_000
"""By how many numbers rows are looked for whose numbers were changed."""
TEXTS: Final = (
    "agent",
    "place",
    "repository",
    "asked_by",
    "asked_id",
    "decided_by",
    "decided_id",
    "rule",
    "what",
    "ref",
)
"""The texts of a row; an empty one is not part of it."""


class RecordKind(StrEnum):
    """What a row tells."""

    BEGIN = "begin"
    """The record begins; earlier work is not in it."""
    DECISION = "decision"
    """An ask was answered or ended without an answer, or a rule refused a call."""
    GRANT = "grant"
    """A person allowed something for good, or it was taken back."""
    ROLE = "role"
    """A person got another role."""
    CALL = "call"
    """An agent used a tool."""
    PUSH = "push"
    """A commit was pushed."""
    PULL_REQUEST = "pull request"
    """A pull request was opened or got another commit."""
    POST = "post"
    """Something was posted where people talk."""
    ERASURE = "erasure"
    """Texts of earlier rows were erased."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvent:
    """What happened, before it has a row."""

    kind: RecordKind
    source: str
    """What it was read from, such as `ask:12`: each is recorded once. Never words."""
    at: float
    outcome: str = ""
    """A code, such as `allowed` or `sent`."""
    session: int | None = None
    turn: int | None = None
    agent: str = ""
    place: str = ""
    repository: str = ""
    asked_by: str = ""
    """The people whose words the work began with."""
    asked_id: str = ""
    """Their accounts: `slack:U1`, with blanks between several."""
    decided_by: str = ""
    """Who allowed or refused it."""
    decided_id: str = ""
    rule: str = ""
    """Which rule or grant decided, if no person did."""
    what: str = ""
    """The command, the file, the branch."""
    ref: str = ""
    """The commit, the address of the pull request, the post on its platform."""
    erases: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The rows whose texts were erased, by the name of the text."""

    @property
    def texts(self) -> dict[str, str]:
        """The texts that it has."""
        return {name: text for name in TEXTS if (text := getattr(self, name))}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRow:
    """One row of the chain."""

    number: int
    at: float
    kind: str
    source: str
    outcome: str = ""
    session: int | None = None
    turn: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    salts: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    """The digests of texts that have gone."""
    erases: Mapping[str, Sequence[int]] = field(default_factory=dict)
    previous: str = ORIGIN
    hash: str = ""


def chain(event: RecordEvent, number: int, previous: str) -> RecordRow:
    """Make the row of an event, which follows the row with a hash."""
    texts = event.texts
    row = RecordRow(
        number=number,
        at=event.at,
        kind=event.kind,
        source=event.source,
        outcome=event.outcome,
        session=event.session,
        turn=event.turn,
        texts=texts,
        salts={name: secrets.token_hex(SALT_BYTES) for name in texts},
        erases=event.erases,
        previous=previous,
    )
    return replace(row, hash=hash_of(row))


def digest_of(name: str, salt: str, text: str) -> str:
    """Return what stands for a text in the hash of its row."""
    return sha256(f"{salt}\n{name}\n{text}".encode()).hexdigest()


def hash_of(row: RecordRow) -> str:
    """Return the hash that a row must have."""
    digests = dict(row.digests)
    for name, text in row.texts.items():
        digests[name] = digest_of(name, row.salts[name], text)
    head = {
        "at": round(row.at * 1000),
        "digests": digests,
        "erases": row.erases,
        "kind": row.kind,
        "number": row.number,
        "outcome": row.outcome,
        "previous": row.previous,
        "session": row.session,
        "source": row.source,
        "turn": row.turn,
    }
    canonical = json.dumps(head, sort_keys=True, separators=(",", ":"))
    return sha256(f"agent-bridge record {FORMAT}\n{canonical}".encode()).hexdigest()


def write_header(rows: int, head: str) -> str:
    """Write the first line of an export: how many rows follow, and the hash of the last one."""
    return json.dumps({"record": "agent-bridge", "format": FORMAT, "rows": rows, "head": head})


def write_row(row: RecordRow) -> str:
    """Write a row as a line of an export; of a text that has gone only its digest is there."""
    fields: dict[str, Any] = {
        name: {"text": text, "salt": row.salts[name]} for name, text in row.texts.items()
    }
    fields |= {name: {"digest": digest} for name, digest in row.digests.items()}
    return json.dumps(
        {
            "number": row.number,
            "at": row.at,
            "kind": row.kind,
            "outcome": row.outcome,
            "source": row.source,
            "session": row.session,
            "turn": row.turn,
            "texts": {name: fields[name] for name in TEXTS if name in fields},
            "erases": row.erases,
            "previous": row.previous,
            "hash": row.hash,
        },
        ensure_ascii=False,
    )


def read_row(line: str) -> RecordRow:
    """Read a line of an export.

    Raises:
        ValueError: it is no row.
    """
    try:
        told = json.loads(line)
        texts, salts, digests = dict[str, str](), dict[str, str](), dict[str, str]()
        for name, kept in told["texts"].items():
            if "text" in kept:
                texts[name], salts[name] = kept["text"], kept["salt"]
            else:
                digests[name] = kept["digest"]
        row = RecordRow(
            number=told["number"],
            at=told["at"],
            kind=told["kind"],
            source=told["source"],
            outcome=told["outcome"],
            session=told["session"],
            turn=told["turn"],
            texts=texts,
            salts=salts,
            digests=digests,
            erases={name: list(numbers) for name, numbers in told["erases"].items()},
            previous=told["previous"],
            hash=told["hash"],
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("no row") from error
    if type(row.number) is not int or not isinstance(row.at, int | float):
        raise ValueError("no row")
    return row


class Flaw(StrEnum):
    """What is wrong with an export."""

    UNREADABLE = "unreadable"
    """A line is no row of a record; the number is that of the line."""
    CHANGED = "changed"
    REMOVED = "removed"
    REORDERED = "reordered"
    INSERTED = "inserted"
    TAKEN = "taken"
    """A text is missing, and no later row says that it was erased."""
    CUT_OFF = "cut off"
    """The rows from this one on are missing at the end."""
    DIFFERENT = "different"
    """The row is another one than in the earlier export."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the check of an export found."""

    rows: int
    """How many rows are right, from the first one on."""
    head: str = ORIGIN
    """The hash of the last of them."""
    flaw: Flaw | None = None
    number: int = 0
    """The first row that is wrong."""


class _Flawed(Exception):
    def __init__(self, flaw: Flaw, number: int) -> None:
        self.flaw, self.number = flaw, number
        super().__init__(flaw)


def verify(lines: Iterable[str], earlier: Iterable[str] | None = None) -> Verdict:
    """Check an export alone, and that it goes on where an earlier export of the same bridge ended.

    Names the first row that was changed, removed, moved or inserted.
    """
    check = _Check()
    try:
        check.run(iter(lines), None if earlier is None else _read_all(iter(earlier)))
    except _Flawed as found:
        return Verdict(check.rows, check.head, found.flaw, found.number)
    return Verdict(check.rows, check.head)


class _Check:
    """The check of one export, and how far it has come."""

    def __init__(self) -> None:
        self.rows, self.head = 0, ORIGIN
        self._missing: list[tuple[str, int]] = []
        self._erased: dict[tuple[str, int], int] = {}
        """Which row says that a text was erased."""

    def run(self, lines: Iterator[str], earlier: Iterator[RecordRow] | None) -> None:
        """Check every row.

        Raises:
            _Flawed: one is wrong.
        """
        announced, rows = _read_header(lines), _read(lines)
        for row in rows:
            _check(row, self.rows + 1, self.head, rows)
            known = None if earlier is None else next(earlier, None)
            if known is not None and known.hash != row.hash:
                raise _Flawed(Flaw.DIFFERENT, row.number)
            self._missing += [(name, row.number) for name in row.digests]
            for name, numbers in row.erases.items():
                self._erased |= {(name, each): row.number for each in numbers}
            self.rows, self.head = row.number, row.hash
        if announced > self.rows or (earlier is not None and next(earlier, None) is not None):
            raise _Flawed(Flaw.CUT_OFF, self.rows + 1)
        for text in self._missing:
            if self._erased.get(text, 0) <= text[1]:
                raise _Flawed(Flaw.TAKEN, text[1])


def _read_header(lines: Iterator[str]) -> int:
    try:
        header = json.loads(next(lines, ""))
        if (header["record"], header["format"]) == ("agent-bridge", FORMAT):
            return int(header["rows"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise _Flawed(Flaw.UNREADABLE, 1)


def _read(lines: Iterator[str]) -> Iterator[RecordRow]:
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            yield read_row(line)
        except ValueError:
            raise _Flawed(Flaw.UNREADABLE, number) from None


def _read_all(lines: Iterator[str]) -> Iterator[RecordRow]:
    _read_header(lines)
    yield from _read(lines)


def _check(row: RecordRow, expected: int, previous: str, rest: Iterator[RecordRow]) -> None:
    """Check that a row is itself, and the one that comes next.

    Raises:
        _Flawed: it is not.
    """
    if hash_of(row) != row.hash:
        raise _Flawed(*_explain(row))
    if row.number < expected:
        raise _Flawed(Flaw.INSERTED, row.number)
    if row.number > expected:
        is_later = any(each.number == expected for each in rest)
        raise _Flawed(Flaw.REORDERED if is_later else Flaw.REMOVED, expected)
    if row.previous != previous:
        # The row fits itself, so it is the one before that is not what it was.
        raise _Flawed(Flaw.CHANGED, max(expected - 1, 1))


def _explain(row: RecordRow) -> tuple[Flaw, int]:
    """Tell whether rows before this one were inserted or removed, and the others renumbered."""
    for by in range(1, SHIFT):
        if hash_of(replace(row, number=row.number - by)) == row.hash:
            return Flaw.INSERTED, row.number - by
        if hash_of(replace(row, number=row.number + by)) == row.hash:
            return Flaw.REMOVED, row.number
    return Flaw.CHANGED, row.number
