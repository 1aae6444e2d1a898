"""Turns rows into the core's values and back; pure.

Only this module reads and writes what a table stores as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Row

from app.model import wording
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import (
    DelegatedLine,
    Fact,
    MadeFile,
    Note,
    NoteCode,
    Outcome,
    Post,
    PostContent,
    Pushed,
    ToolLine,
)
from app.model.steering import Steered
from app.model.types import (
    Entry,
    File,
    Message,
    Session,
    SessionState,
    Speaker,
    Told,
    Turn,
    TurnState,
)
from app.model.updates import Ask, AskOption, PlanStep, view_from

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_CODES = frozenset(NoteCode)
T = TypeVar("T", bound="DataclassInstance")


def read_row(kind: type[T], row: Row[Any], **given: Any) -> T:
    """Build a value from the columns named like its fields, except those that are given."""
    read = {each.name: getattr(row, each.name) for each in fields(kind) if each.name not in given}
    return kind(**read, **given)


def session_of(row: Row[Any]) -> Session:
    """Read a session with its first key and its place."""
    return read_row(
        Session,
        row,
        key=SessionKey(row.service, row.external, row.agent),
        place=PlaceKey(row.place_service, row.place_name),
        state=SessionState(row.state),
        title=row.named or row.title,
        held=bool(row.held),
        failed=row.last_turn == "failed",
        spent=row.spent - row.cleared,
        read_others=bool(row.read_others),
        told=Told(**row.standing) if row.standing else None,
        attributes=row.attributes or {},
        unshown=row.unshown or {},
    )


def place_of(stored: str | None) -> PlaceKey | None:
    """Read the key of a place from a column."""
    service, _, name = (stored or "").partition(":")
    return PlaceKey(service, name) if name else None


def turn_of(row: Row[Any]) -> Turn:
    """Read a turn with the surface that asked."""
    return read_row(
        Turn,
        row,
        surface=SessionKey(row.service, row.external, row.agent),
        state=TurnState(row.state),
        error=turn_error(row.error),
    )


def turn_error(stored: str) -> str:
    """Read why a turn failed."""
    return wording.note(Note(NoteCode(stored))) if stored in _CODES else stored


def message_of(row: Row[Any]) -> Message:
    """Read a message."""
    return read_row(
        Message,
        row,
        speaker=Speaker(row.speaker_id, row.speaker, row.speaker_kind, number=row.speaker_number),
        files=tuple(File(**file) for file in row.files),
        number=row.id,
        steered=Steered(row.steered) if row.steered else None,
    )


def entry_of(row: Row[Any]) -> Entry:
    """Read one transcript row; one of an older release has text instead of a note."""
    note = note_of(row.data.get("note"))
    return read_row(Entry, row, text=row.text if note is None else wording.note(note), note=note)


def entry_row(entry: Entry) -> dict[str, Any]:
    """Write the content of one transcript row; a note is stored as its code and facts."""
    note = entry.note
    return {
        "kind": entry.kind,
        "speaker": entry.speaker,
        "text": entry.text if note is None else note.code,
        "data": dict(entry.data) if note is None else {**entry.data, "note": asdict(note)},
    }


def note_of(stored: Mapping[str, str] | None) -> Note | None:
    """Read a note."""
    return Note(NoteCode(stored["code"]), stored["by"], stored["about"]) if stored else None


def ask_of(row: Row[Any]) -> Ask:
    """Read an ask."""
    return read_row(Ask, row, options=options_of(row.options))


def post_of(row: Row[Any]) -> Post:
    """Read a post."""
    return read_row(
        Post,
        row,
        target=SessionKey(row.service, row.external, row.agent),
        content=content_of(row.content),
    )


def content_of(stored: Mapping[str, Any]) -> PostContent:
    """Read a post's content."""
    reason = note_of(stored.get("reason"))
    return PostContent(
        **{
            **stored,
            "note": stored["note"] if reason is None else wording.note(reason),
            "reason": reason,
            "plan": tuple(PlanStep(**step) for step in stored["plan"]),
            "tools": tuple(ToolLine(**tool) for tool in stored["tools"]),
            "facts": tuple(Fact(**fact) for fact in stored["facts"]),
            "options": options_of(stored["options"]),
            "files": tuple(MadeFile(**file) for file in stored["files"]),
            "view": view_from(view) if (view := stored.get("view")) else None,
            "outcome": _outcome_of(stored.get("outcome")),
            "mentions": tuple(stored.get("mentions", ())),
            "steered": tuple(stored.get("steered", ())),
            "delegated": tuple(DelegatedLine(**line) for line in stored.get("delegated", ())),
        }
    )


def _outcome_of(stored: Mapping[str, Any] | None) -> Outcome | None:
    if stored is None:
        return None
    pushed = Pushed(**stored["pushed"]) if stored["pushed"] else None
    approvers = tuple(stored["approvers"])
    return Outcome(**{**stored, "approvers": approvers, "pushed": pushed})


def content_row(content: PostContent) -> dict[str, Any]:
    """Write a post's content."""
    return asdict(content if content.reason is None else replace(content, note=""))


def options_of(stored: Iterable[Mapping[str, Any]]) -> tuple[AskOption, ...]:
    """Read the options of an ask."""
    return tuple(AskOption(**option) for option in stored)
