"""Writes asks inside somebody's commit: opened with the post that shows them, closed once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, insert, select, update

from app.core.consent.offers import text_of, unsaid
from app.core.keys import SessionKey
from app.core.posts import NewPost, PostContent
from app.core.types import Entry, TurnRef
from app.core.updates import AskRequest
from app.store.posts import finish_post, insert_post
from app.store.tables import ask, session, surface, turn
from app.store.transcript import insert_entries


def ask_post_key(ask_id: int) -> str:
    """Name the post that shows an ask."""
    return f"ask:{ask_id}"


def target_of(connection: Connection, turn_id: int) -> SessionKey:
    """Tell in which conversation a turn was asked for."""
    row = connection.execute(
        select(surface.c.service, surface.c.external, surface.c.agent)
        .join(turn, turn.c.surface == surface.c.id)
        .where(turn.c.id == turn_id)
    ).one()
    return SessionKey(*row)


def open_ask(
    connection: Connection,
    request: AskRequest,
    ref: TurnRef,
    now: float,
    *,
    deadline: float,
    resume_at: float | None = None,
    adrift: bool = False,
) -> tuple[int, int]:
    """Keep an ask, its row in the transcript and its post; returns the ids of ask and post."""
    generation = select(session.c.generation).where(session.c.id == ref.session).scalar_subquery()
    ask_id = connection.execute(
        insert(ask)
        .values(
            session=ref.session,
            turn=ref.turn,
            generation=generation,
            kind=request.kind,
            call=request.call,
            title=request.title,
            subject=request.subject,
            options=[asdict(option) for option in request.options],
            free_text=request.free_text,
            tool_kind=request.tool_kind,
            arguments_hash=request.arguments_hash,
            deadline=deadline,
            resume_at=resume_at,
            adrift=adrift,
            created_at=now,
        )
        .returning(ask.c.id)
    ).scalar_one()
    target = target_of(connection, ref.turn)
    content = _shown(int(ask_id), request)
    post = NewPost(ask_post_key(ask_id), target, content, ref.session, ref.turn)
    post_id = insert_post(connection, post, now)
    shown = _entry(int(ask_id), request, ref, deadline=deadline, resume_at=resume_at)
    insert_entries(connection, [shown], now)
    return int(ask_id), post_id


def _shown(ask_id: int, request: AskRequest) -> PostContent:
    """Say what the post of an ask shows as long as it is open."""
    return PostContent(
        kind="ask",
        state="open",
        text=text_of(request.title, request.subject),
        ask=ask_id,
        options=request.options,
        free_text=request.free_text,
        url=request.url,
    )


def _entry(
    ask_id: int, request: AskRequest, ref: TurnRef, *, deadline: float, resume_at: float | None
) -> Entry:
    """Write what the page shows of an ask as long as it is open."""
    data = {
        "ask": ask_id,
        "state": "open",
        "kind": request.kind,
        "options": [asdict(option) for option in request.options],
        "free_text": request.free_text,
        "call": request.call,
        "deadline": deadline,
    }
    if resume_at is not None:
        data["resume_at"] = resume_at
    if about := unsaid(request.title, request.subject):
        data["about"] = about
    return Entry(kind="ask", text=request.title, data=data, session=ref.session, turn=ref.turn)


def close_ask(
    connection: Connection,
    row: Row[Any],
    change: dict[str, Any],
    note: str,
    now: float,
    data: dict[str, Any] | None = None,
) -> list[int]:
    """Close an ask that is open; returns the post that says so."""
    connection.execute(update(ask).where(ask.c.id == row.id).values(closed_at=now, **change))
    said = {"ask": row.id, **change, **(data or {})}
    entry = Entry(kind="ask", text=note, data=said, session=row.session, turn=row.turn)
    insert_entries(connection, [entry], now)
    text = text_of(row.title, row.subject)
    content = PostContent(kind="ask", state=change["state"], text=text, note=note, ask=row.id)
    post = finish_post(connection, ask_post_key(row.id), content)
    return [] if post is None else [post]


def close_asks(
    connection: Connection,
    which: ColumnElement[bool],
    state: Literal["cancelled", "lost"],
    note: str,
    now: float,
) -> list[int]:
    """Close the open asks among these; returns their posts. Offers outlive what they came with."""
    still = (ask.c.state == "open") & (ask.c.kind != "offer")
    rows = connection.execute(select(ask).where(which, still)).all()
    return [
        post for row in rows for post in close_ask(connection, row, {"state": state}, note, now)
    ]
