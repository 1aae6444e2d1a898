"""Reads trees of delegated turns for people, and records which ends they were told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, bindparam, exists, func, select, update

from app.model.delegation import Branch, BranchState
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import Entry, TurnState
from app.store.database import Store, write
from app.store.posts import insert_post, turn_post_key
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    ask,
    delegation,
    place,
    post,
    session,
    surface,
    turn,
)
from app.store.transcript import insert_entries
from app.store.values import content_of, read_row, turn_error

_STATES: dict[str, BranchState] = {
    TurnState.QUEUED: "queued",
    TurnState.STARTING: "working",
    TurnState.PROMPTED: "working",
    TurnState.PARKED: "waiting",
    TurnState.DONE: "done",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "stopped",
}
_ENDS: dict[str, Literal["done", "failed", "stopped"]] = {
    TurnState.DONE: "done",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "stopped",
}
OVER = ("done", "failed", "cancelled")

_caller = session.alias("caller")
_root = session.alias("root")
_root_place = place.alias("root_place")
_first = turn.alias("first")
_each = surface.alias("each")
_ROOT_SURFACE = func.coalesce(
    _first.c.surface,
    select(func.min(_each.c.id)).where(_each.c.session == _root.c.id).scalar_subquery(),
)
_WAITS = exists().where(ask.c.turn == turn.c.id, ASK_IS_OPEN, ASK_HOLDS)
_BRANCHES = (
    select(
        delegation,
        turn.c.state,
        turn.c.paused,
        turn.c.ended_at,
        _WAITS.label("waits"),
        place.c.service,
        place.c.name.label("place_name"),
        _caller.c.agent.label("caller_agent"),
        _first.c.state.label("root_state"),
        surface.c.service.label("root_service"),
        surface.c.external.label("root_external"),
        surface.c.agent.label("root_agent"),
        _root_place.c.service.label("root_place_service"),
        _root_place.c.name.label("root_place_name"),
    )
    .select_from(delegation)
    .join(turn, turn.c.id == delegation.c.turn)
    .join(session, session.c.id == delegation.c.session)
    .join(place, place.c.id == session.c.place)
    .join(_caller, _caller.c.id == delegation.c.caller_session)
    .join(_root, _root.c.id == delegation.c.root_session)
    .join(_root_place, _root_place.c.id == delegation.c.root_place)
    .outerjoin(_first, _first.c.id == delegation.c.root_turn)
    .join(surface, surface.c.id == _ROOT_SURFACE)
)
_OF_TURN = _BRANCHES.where(delegation.c.turn == bindparam("of"))
_BY_TURN = _BRANCHES.where(delegation.c.caller_turn == bindparam("of")).order_by(delegation.c.id)
_OF_SESSION = (
    _BRANCHES.where(delegation.c.session == bindparam("of"))
    .order_by(delegation.c.id.desc())
    .limit(1)
)
_SUCCESSOR = select(turn.c.successor).where(turn.c.id == bindparam("of"))
_WORDS = (
    select(turn.c.state, turn.c.error, post.c.content)
    .outerjoin(post, post.c.key == bindparam("name"))
    .where(turn.c.id == bindparam("of"))
)
_asked = (
    select(delegation.c.caller_session.label("session"))
    .where(delegation.c.session == bindparam("of"))
    .cte("asked", recursive=True)
)
_asked = _asked.union(
    select(delegation.c.caller_session).where(delegation.c.session == _asked.c.session)
)
_ABOVE = (
    select(place.c.service, place.c.name)
    .join(session, session.c.place == place.c.id)
    .where(session.c.id.in_(select(_asked.c.session)))
    .distinct()
)
# What people had agents do together is told by who joins their answers.
_UNSHOWN = (
    _BRANCHES.where(delegation.c.shown_at.is_(None), delegation.c.root_turn.is_not(None))
    .where(turn.c.state.in_(OVER), delegation.c.kind.in_(("message", "spawn")))
    .order_by(delegation.c.id)
)


class DelegationTree(Store):
    """The tree port."""

    def under(self, turn_id: int) -> Sequence[Branch]:
        """List what a turn led to, oldest first, each followed by what it led to itself."""
        return self._database.look(lambda connection: list(_under(connection, turn_id)))

    def of_turn(self, turn_id: int) -> Branch | None:
        """Read the delegation that a turn belongs to, also as its continuation."""
        found, last = self._find(_OF_TURN, turn_id), turn_id
        # A turn that was parked and answered goes on as another one, which the row names then.
        while found is None and (row := self._database.one(_SUCCESSOR, of=last)) is not None:
            if row.successor is None:
                return None
            found, last = self._find(_OF_TURN, row.successor), row.successor
        return found

    def of_session(self, session_id: int) -> Branch | None:
        """Read the last delegation that a session works on, or did."""
        return self._find(_OF_SESSION, session_id)

    def above(self, session_id: int) -> Sequence[PlaceKey]:
        """List the places in which the work of a session is shown too: up to where it began."""
        rows = self._database.some(_ABOVE, of=session_id)
        return [PlaceKey(row.service, row.name) for row in rows]

    def words(self, turn_id: int) -> str:
        """Read what a turn that is over ended with: its last words, or why it failed."""
        row = self._database.one(_WORDS, of=turn_id, name=turn_post_key(turn_id))
        if row is None:
            return ""
        said = content_of(row.content).said if row.content else ""
        return said.strip() if row.state == TurnState.DONE else turn_error(row.error)

    async def unshown(self) -> Sequence[Branch]:
        """List what ended and was not shown to people yet."""
        return await self._database.read(
            lambda connection: [_branch_of(row) for row in connection.execute(_UNSHOWN).all()]
        )

    @write
    def show(
        self,
        connection: Connection,
        delegation_id: int,
        posts: Sequence[NewPost],
        entries: Sequence[Entry],
    ) -> Sequence[int]:
        """Tell people the end of a delegation, once; returns the posts to send."""
        now = self._now()
        own = update(delegation).where(delegation.c.id == delegation_id)
        first = own.where(delegation.c.shown_at.is_(None)).values(shown_at=now)
        if not connection.execute(first).rowcount:
            return ()
        insert_entries(connection, entries, now)
        return [insert_post(connection, new, now) for new in posts]

    def _find(self, statement: Select[Any], number: int) -> Branch | None:
        row = self._database.one(statement, of=number)
        return _branch_of(row) if row else None


def note_shown(connection: Connection, content: PostContent, now: float) -> None:
    """Record which ends the last post of a turn tells, inside the caller's commit."""
    told = [line.id for line in content.delegated if line.is_over]
    if told:
        which = delegation.c.id.in_(told) & delegation.c.shown_at.is_(None)
        connection.execute(update(delegation).where(which).values(shown_at=now))


def _under(connection: Connection, turn_id: int) -> Iterator[Branch]:
    for row in connection.execute(_BY_TURN, {"of": turn_id}).all():
        yield _branch_of(row)
        yield from _under(connection, row.turn)


def _branch_of(row: Row[Any]) -> Branch:
    waits = row.waits or (row.paused is not None and row.state == TurnState.QUEUED)
    return read_row(
        Branch,
        row,
        state="waiting" if waits and row.ended_at is None else _STATES[row.state],
        place=PlaceKey(row.service, row.place_name),
        root=SessionKey(row.root_service, row.root_external, row.root_agent),
        root_place=PlaceKey(row.root_place_service, row.root_place_name),
        person=row.person_name,
        root_end=_ENDS.get(row.root_state, ""),
    )
