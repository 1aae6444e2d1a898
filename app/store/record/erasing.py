"""Takes people and deleted conversations out of the record, inside the caller's commit."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, or_, select

from app.store.record.chain import erase
from app.store.record.following import follow
from app.store.tables import record


def erase_words(connection: Connection, sessions: Collection[int], now: float) -> None:
    """Take out what agents ran and asked in sessions that are deleted; who and when stays."""
    while follow(connection, now):
        pass  # their other rows go in this commit
    said = record.c.what.is_not(None) & record.c.kind.in_(_IN_WORDS)
    mine = select(record.c.number).where(record.c.session.in_(sessions), said)
    numbers = connection.execute(mine).scalars()
    erase(connection, dict.fromkeys(numbers, ("what",)), "deleted", now)


_IN_WORDS = ("decision", "grant", "call")
"""The kinds of rows that tell in words what was done: a branch is on the remote anyway."""


def erase_person(
    connection: Connection, accounts: Collection[str], names: Collection[str], now: float
) -> None:
    """Take a person out, by their accounts and by names that no one else has.

    Where several people asked together, none of them is named any more.
    """
    found: dict[int, list[str]] = {}
    for who, known in (("asked_by", "asked_id"), ("decided_by", "decided_id")):
        named, account = record.c[who], record.c[known]
        near = or_(
            *(named.contains(each, autoescape=True) for each in names if each),
            *(account.contains(each, autoescape=True) for each in accounts),
        )
        rows = connection.execute(select(record.c.number, named, account).where(near))
        for number, together, ids in rows:
            people = {*(together or "").split(", "), *(ids or "").split(), together}
            if people & {*names, *accounts}:
                found.setdefault(number, []).extend((who, known))
    erase(connection, found, "forgotten", now)
