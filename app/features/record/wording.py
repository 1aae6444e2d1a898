"""Says what the record tells, for the page and the terminal."""

from __future__ import annotations

from typing import Final

from app.model.record import Flaw, RecordRow, Verdict

KINDS: Final = {
    "begin": "Record",
    "decision": "Decision",
    "grant": "Always allowed",
    "role": "Role",
    "call": "Tool",
    "push": "Push",
    "pull request": "Pull request",
    "post": "Post",
    "erasure": "Erasure",
}
FLAWS: Final = {
    Flaw.UNREADABLE: "Line {number} is not a row of a record",
    Flaw.CHANGED: "Row {number} was changed",
    Flaw.REMOVED: "Row {number} was removed",
    Flaw.REORDERED: "Row {number} is not in its place",
    Flaw.INSERTED: "Row {number} was inserted",
    Flaw.TAKEN: "Row {number} lacks a text, and no later row says that it was erased",
    Flaw.CUT_OFF: "Row {number} and what follows it was removed",
    Flaw.DIFFERENT: "Row {number} is another one than in the earlier export",
}
ERASED: Final = "erased"
_POSTS: Final = {"turn": "An answer", "ask": "A question", "notice": "A notice", "files": "Files"}
_ERASURES: Final = {
    "purged": "a text was purged",
    "forgotten": "a person was forgotten",
    "deleted": "a conversation was deleted or cleared",
}
_NAMED: Final = 5
"""Rows that an erasure names; the export has all."""


def describe(row: RecordRow) -> str:
    """Say what a row tells."""
    if row.kind == "begin":
        return "The record begins. What happened before is not in it."
    if row.kind == "erasure":
        numbers = sorted({number for some in row.erases.values() for number in some})
        more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
        named = ", ".join(map(str, numbers[:_NAMED]))
        return f"Texts of row {named}{more} were erased: {_ERASURES.get(row.outcome, row.outcome)}."
    words = read_text(row, "what")
    return _POSTS.get(words, words) if row.kind == "post" else words


def read_text(row: RecordRow, name: str) -> str:
    """Return a text of a row, or that it was erased."""
    return ERASED if name in row.digests else row.texts.get(name, "")


def decision(row: RecordRow) -> str:
    """Say who or what decided."""
    person, rule = read_text(row, "decided_by"), read_text(row, "rule")
    if person and rule:
        return f"{person}, by {rule}"
    return person or (f"rule {rule}" if rule and rule != "not asked" else rule)


def verdict(found: Verdict) -> str:
    """Say what the check of an export found."""
    if found.flaw is None:
        rows = "1 row" if found.rows == 1 else f"{found.rows} rows"
        return f"The record is whole: {rows}, the last one is {found.head}."
    return f"{FLAWS[found.flaw].format(number=found.number)}. What is before it is right."
