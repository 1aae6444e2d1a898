"""Finds out inside a commit whether a turn is paused by the operator, and tells people once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, and_, bindparam, exists, func, literal, or_, select

from app.model.delegation import SERVICE
from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import Entry
from app.store.posts import insert_post
from app.store.tables import place, post, surface, suspension, turn
from app.store.transcript import insert_entries

ALL: Final = "all"
AGENT: Final = "agent:"
PLACE: Final = "place:"

PAUSED: Final = Note(NoteCode.SUSPENDED)

_surface, _place = surface.alias("paused_surface"), place.alias("paused_place")
_NAME = literal(PLACE) + _place.c.service + ":" + _place.c.name
_IN_SCOPE = or_(
    suspension.c.scope == literal(AGENT) + _surface.c.agent,
    and_(
        # A turn that agents wait for may begin, so that theirs can end.
        _place.c.service != SERVICE,
        or_(
            suspension.c.scope == ALL,
            suspension.c.scope == _NAME,
            # A channel holds its threads, and a repository its issues.
            func.substr(_NAME, 1, func.length(suspension.c.scope) + 1) == suspension.c.scope + ":",
        ),
    ),
)
_OF_TURN = (
    select(_surface.c.service, _surface.c.external, _surface.c.agent, suspension.c.since)
    .select_from(_surface)
    .join(_place, _place.c.id == _surface.c.place)
    .join(suspension, _IN_SCOPE)
)
SUSPENDED = exists(_OF_TURN.where(_surface.c.id == turn.c.surface).correlate(turn))
"""Whether a row of `turn` is paused by the operator."""
_FIRST = (
    _OF_TURN.add_columns(turn.c.session)
    .join(turn, turn.c.surface == _surface.c.id)
    .where(turn.c.id == bindparam("of"))
    .order_by(suspension.c.since)
    .limit(1)
)


def tell_suspended(connection: Connection, turns: Sequence[int], now: float) -> list[int]:
    """Tell people that turns wait for the operator, once per conversation and pause."""
    posts: list[int] = []
    for turn_id in turns:
        row = connection.execute(_FIRST, {"of": turn_id}).first()
        if row is None or row.service == SERVICE:
            continue
        key = SessionKey(row.service, row.external, row.agent)
        name = f"paused:{row.since}:{key}"
        if connection.execute(select(post.c.id).where(post.c.key == name)).first() is None:
            content = PostContent(kind="notice", reason=PAUSED)
            posts.append(insert_post(connection, NewPost(name, key, content, row.session), now))
            insert_entries(connection, [Entry("notice", note=PAUSED, session=row.session)], now)
    return posts
