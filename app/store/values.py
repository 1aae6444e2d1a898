"""Turns rows into the core's values and back; pure.

Only this module reads and writes what a table stores as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

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

_CODES = frozenset(NoteCode)


def session_of(row: Row[Any]) -> Session:
    """Read a session with its first key and its place."""
    return Session(
        id=row.id,
        key=SessionKey(row.service, row.external, row.agent),
        place=PlaceKey(row.place_service, row.place_name),
        state=SessionState(row.state),
        title=row.named or row.title,
        acp_session_id=row.acp_session_id,
        generation=row.generation,
        mode=row.mode,
        model=row.model,
        link=row.link,
        updated_at=row.updated_at,
        held=bool(row.held),
        failed=row.last_turn == "failed",
        spent=row.spent - row.cleared,
        read_others=bool(row.read_others),
        told=Told(**row.standing) if row.standing else None,
        attributes=row.attributes or {},
    )


def place_of(stored: str | None) -> PlaceKey | None:
    """Read the key of a place from a column."""
    service, _, name = (stored or "").partition(":")
    return PlaceKey(service, name) if name else None


def turn_of(row: Row[Any]) -> Turn:
    """Read a turn with the surface that asked."""
    return Turn(
        id=row.id,
        session=row.session,
        surface=SessionKey(row.service, row.external, row.agent),
        state=TurnState(row.state),
        cuts=row.cuts,
        continued=row.continued,
        held=row.held,
        stopped=row.stopped,
        prompt=row.prompt,
        system=row.system,
        error=turn_error(row.error),
        successor=row.successor,
        created_at=row.created_at,
    )


def turn_error(stored: str) -> str:
    """Read why a turn failed."""
    return wording.note(Note(NoteCode(stored))) if stored in _CODES else stored


def message_of(row: Row[Any]) -> Message:
    """Read a message."""
    return Message(
        speaker=Speaker(row.speaker_id, row.speaker, row.speaker_kind, number=row.speaker_number),
        text=row.text,
        message_id=row.message_id,
        at=row.at,
        link=row.link,
        files=tuple(File(**file) for file in row.files),
        pointed=row.pointed,
        context=row.context,
        number=row.id,
        steered=Steered(row.steered) if row.steered else None,
    )


def entry_of(row: Row[Any]) -> Entry:
    """Read one transcript row; one of an older release has text instead of a note."""
    note = note_of(row.data.get("note"))
    return Entry(
        id=row.id,
        kind=row.kind,
        text=row.text if note is None else wording.note(note),
        note=note,
        speaker=row.speaker,
        data=row.data,
        session=row.session,
        turn=row.turn,
        at=row.at,
    )


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
    return Ask(
        id=row.id,
        session=row.session,
        turn=row.turn,
        title=row.title,
        options=options_of(row.options),
        state=row.state,
        answer=row.answer,
        answered_by=row.answered_by,
        kind=row.kind,
        free_text=row.free_text,
        deadline=row.deadline,
        subject=row.subject,
        host=row.host,
        created_at=row.created_at,
    )


def post_of(row: Row[Any]) -> Post:
    """Read a post."""
    return Post(
        id=row.id,
        target=SessionKey(row.service, row.external, row.agent),
        marker=row.marker,
        content=content_of(row.content),
        state=row.state,
        remote_id=row.remote_id,
        consumed=row.consumed,
        session=row.session,
        turn=row.turn,
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
