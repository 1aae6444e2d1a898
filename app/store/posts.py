"""Stores posts: their content, what the platform accepted, and what is still to send."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, func, select, update

from app.model.conversations import EVERYTHING, ListFilter
from app.model.inbound import PauseReason
from app.model.posts import NewPost, Note, Post, PostContent, PostSent
from app.model.types import Entry
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.tables import post, progress, schedule, surface
from app.store.transcript import insert_entries
from app.store.values import content_of, content_row, post_of

UNSENT = ("new", "closing")
OPEN = ("new", "open")

_ONE = select(post).where(post.c.id == bindparam("of"))
_NAMED = select(post).where(post.c.key == bindparam("name"))
_NUMBER = select(post.c.id).where(post.c.key == bindparam("name"))
_ADD = insert(post).on_conflict_do_nothing()
_SHOWN = select(progress.c.content).where(progress.c.post == bindparam("of"))
_FORGET = delete(progress).where(progress.c.post == bindparam("of"))


def turn_post_key(turn_id: int) -> str:
    """Return the key of the post that shows a turn."""
    return f"turn:{turn_id}"


def insert_post(connection: Connection, new: NewPost, now: float) -> int:
    """Create a post inside the caller's commit; one with a known key stays unchanged."""
    connection.execute(
        _ADD,
        {
            "key": new.key,
            "service": new.target.service,
            "external": new.target.external,
            "agent": new.target.agent,
            "session": new.session,
            "turn": new.turn,
            "marker": f"ab-{secrets.token_hex(8)}",
            "content": content_row(new.content),
            # Files never change, however many calls it takes to send them.
            "state": "closing" if new.content.kind == "files" else "new",
            "created_at": now,
        },
    )
    return int(connection.execute(_NUMBER, {"name": new.key}).scalar_one())


def finish_post(connection: Connection, key: str, content: PostContent) -> int | None:
    """Give a post its last content inside the caller's commit."""
    row = connection.execute(select(post).where(post.c.key == key, post.c.state.in_(OPEN))).first()
    if row is None:
        return None
    # Code that finishes a post from outside its turn does not know whom it answers.
    content = address_like(connection, key, content)
    change = update(post).where(post.c.id == row.id)
    connection.execute(change.values(content=content_row(content), state="closing"))
    connection.execute(_FORGET, {"of": row.id})
    return int(row.id)


def end_post(connection: Connection, key: str, state: str, note: Note) -> int | None:
    """Finish a post with its last stored content, inside the caller's commit."""
    row = connection.execute(_NAMED, {"name": key}).first()
    if row is None:
        return None
    return finish_post(connection, key, replace(content_of(row.content), state=state, reason=note))


def address_like(connection: Connection, key: str, content: PostContent) -> PostContent:
    """Address a content to the person and the message that another post answers."""
    row = connection.execute(_NAMED, {"name": key}).first()
    first = PostContent(kind="turn") if row is None else content_of(row.content)
    return replace(content, asker=first.asker, message_id=first.message_id)


def keep_content(connection: Connection, key: str, content: PostContent) -> None:
    """Store what an open post shows now, for code that ends it without knowing its turn."""
    still = post.c.state.in_(OPEN)
    change = update(post).where(post.c.key == key, still)
    connection.execute(change.values(content=content_row(content)))


class PostStore(Store):
    """The post port."""

    @write
    def say(self, connection: Connection, new: NewPost, entry: Entry, *, most: int) -> int | None:
        """Store a post and its row of the transcript, once; None if there are too many like it."""
        like = new.key.rpartition(":")[0]
        alike = select(func.count()).where(post.c.key > f"{like}:", post.c.key < f"{like};")
        if (known := connection.execute(_NUMBER, {"name": new.key}).scalar()) is not None:
            return int(known)
        if connection.execute(alike).scalar_one() >= most:
            return None
        now = self._now()
        insert_entries(connection, [entry], now)
        return insert_post(connection, new, now)

    def post(self, post_id: int) -> Post | None:
        """Read one post."""
        row = self._database.one(_ONE, of=post_id)
        return post_of(row) if row else None

    def of_turn(self, turn_id: int) -> Post | None:
        """Read the post that shows a turn."""
        row = self._database.one(_NAMED, name=turn_post_key(turn_id))
        return post_of(row) if row else None

    async def unsent(self) -> Sequence[Post]:
        """List unsent posts, in order."""
        rows = await self._database.all(
            select(post).where(post.c.state.in_(UNSENT)).order_by(post.c.id)
        )
        return [post_of(row) for row in rows]

    async def recent(
        self, only: ListFilter = EVERYTHING, *, before: int | None, limit: int
    ) -> Sequence[Post]:
        """List posts, newest first."""
        query = select(post).order_by(post.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(post.c.id < before)
        equal = ((post.c[name], getattr(only, name)) for name in ("agent", "service", "state"))
        query = query.where(*(column == value for column, value in equal if value is not None))
        if only.since is not None:
            query = query.where(post.c.created_at >= only.since)
        return [post_of(row) for row in await self._database.all(query)]

    @write
    def show(self, connection: Connection, post_id: int, content: PostContent) -> bool:
        """Keep what a post shows while its turn runs; False if it is not open any more."""
        row = content_row(content)
        found = connection.execute(_ONE, {"of": post_id}).first()
        if found is None or found.state not in OPEN:
            return False
        connection.execute(_FORGET, {"of": post_id})
        connection.execute(insert(progress), {"post": post_id, "content": row})
        return True

    def shown(self, post_id: int) -> PostContent | None:
        """Read what a post shows while its turn runs."""
        row = self._database.one(_SHOWN, of=post_id)
        return content_of(row.content) if row else None

    @write
    def sent(self, connection: Connection, post_id: int, sent: PostSent, *, final: bool) -> None:
        """Record what the platform accepted of a post."""
        state: Any = "done" if final else case((post.c.state == "new", "open"), else_=post.c.state)
        change = (
            update(post)
            .where(post.c.id == post_id)
            .values(remote_id=sent.remote_id, consumed=sent.consumed, state=state)
        )
        connection.execute(change)

    @write
    def failed(self, connection: Connection, post_id: int, error: str) -> None:
        """Record that a post can never be sent, and that its surface is unreachable."""
        row = connection.execute(
            update(post)
            .where(post.c.id == post_id)
            .values(state="failed", error=error)
            .returning(post.c.service, post.c.external, post.c.agent)
        ).one()
        for table, change in (
            (surface, {"reachable": False}),
            (schedule, {"state": "paused", "reason": PauseReason.UNREACHABLE}),
        ):
            connection.execute(
                update(table)
                .where(
                    table.c.service == row.service,
                    table.c.external == row.external,
                    table.c.agent == row.agent,
                )
                .values(change)
            )
