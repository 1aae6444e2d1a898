"""Keeps asks: one row each, closed once, each with the post that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, insert, select, update

from app.core.keys import SessionKey
from app.core.posts import NewPost, PostContent
from app.core.types import Entry, TurnRef
from app.core.updates import Ask, AskRequest
from app.store.database import Database
from app.store.posts import finish_post, insert_post
from app.store.tables import ask, surface, turn
from app.store.transcript import insert_entries
from app.store.values import ask_of, options_of


def ask_post_key(ask_id: int) -> str:
    """Name the post that shows an ask."""
    return f"ask:{ask_id}"


def close_asks(
    connection: Connection,
    which: ColumnElement[bool],
    state: Literal["cancelled", "lost"],
    note: str,
    now: float,
) -> list[int]:
    """Close the open asks among these inside somebody's commit; returns their posts."""
    rows = connection.execute(select(ask).where(which, ask.c.state == "open")).all()
    posts = [_close(connection, row, {"state": state}, note, now) for row in rows]
    return [post for post in posts if post is not None]


class Asks:
    """The ask port on SQLite."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def open(self, request: AskRequest, ref: TurnRef) -> tuple[Ask, int]:
        """Keep an ask and its post; returns the ask and the post's id."""
        return await self._database.writer.run(
            lambda connection: _open(connection, request, ref, self._now())
        )

    async def answer(self, ask_id: int, option: str, by: str) -> Sequence[int] | None:
        """Answer an open ask; returns the posts to send, None if it is not open any more."""

        def write(connection: Connection) -> list[int] | None:
            row = connection.execute(
                select(ask).where(ask.c.id == ask_id, ask.c.state == "open")
            ).first()
            if row is None:
                return None
            name = next(item.name for item in options_of(row.options) if item.id == option)
            change = {"state": "answered", "answer": option, "answered_by": by}
            post = _close(connection, row, change, f"{by}: {name}", self._now())
            return [] if post is None else [post]

        return await self._database.writer.run(write)

    def ask(self, ask_id: int) -> Ask | None:
        """Read one ask."""
        row = self._database.one(select(ask).where(ask.c.id == ask_id))
        return ask_of(row) if row else None

    async def asks(self, state: str | None, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks, oldest first."""
        query = select(ask).where(ask.c.id > after).order_by(ask.c.id).limit(limit)
        if state is not None:
            query = query.where(ask.c.state == state)
        return [ask_of(row) for row in await self._database.all(query)]


def _open(connection: Connection, request: AskRequest, ref: TurnRef, now: float) -> tuple[Ask, int]:
    options = [asdict(option) for option in request.options]
    ask_id = connection.execute(
        insert(ask)
        .values(
            session=ref.session,
            turn=ref.turn,
            call=request.call,
            title=request.title,
            options=options,
            arguments_hash=request.arguments_hash,
            created_at=now,
        )
        .returning(ask.c.id)
    ).scalar_one()
    target = connection.execute(
        select(surface.c.service, surface.c.external, surface.c.agent)
        .join(turn, turn.c.surface == surface.c.id)
        .where(turn.c.id == ref.turn)
    ).one()
    content = PostContent(
        kind="ask", state="open", text=request.title, ask=ask_id, options=request.options
    )
    post_id = insert_post(
        connection,
        NewPost(ask_post_key(ask_id), SessionKey(*target), content, ref.session, ref.turn),
        now,
    )
    data = {"ask": ask_id, "state": "open", "options": options, "call": request.call}
    entry = Entry(kind="ask", text=request.title, data=data, session=ref.session, turn=ref.turn)
    insert_entries(connection, [entry], now)
    kept = Ask(ask_id, ref.session, ref.turn, request.title, request.options, "open")
    return kept, post_id


def _close(
    connection: Connection, row: Row[Any], change: dict[str, str], note: str, now: float
) -> int | None:
    connection.execute(update(ask).where(ask.c.id == row.id).values(closed_at=now, **change))
    data = {"ask": row.id, **change}
    entry = Entry(kind="ask", text=note, data=data, session=row.session, turn=row.turn)
    insert_entries(connection, [entry], now)
    content = PostContent(kind="ask", state=change["state"], text=row.title, note=note, ask=row.id)
    return finish_post(connection, ask_post_key(row.id), content)
