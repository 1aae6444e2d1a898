"""Reads who works for whom: trees of delegated turns, and what a session was begun for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, bindparam, exists, func, select, update

from app.model.delegation import SERVICE, Branch, BranchState, DelegatedWork
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostContent
from app.model.types import TurnState
from app.store.database import Store
from app.store.posts import turn_post_key
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    ask,
    delegation,
    place,
    post,
    session,
    surface,
    told,
    transcript,
    turn,
)
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
BRANCHES = (
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
_OF_TURN = BRANCHES.where(delegation.c.turn == bindparam("of"))
_BY_TURN = BRANCHES.where(delegation.c.caller_turn == bindparam("of")).order_by(delegation.c.id)
_OF_SESSION = (
    BRANCHES.where(delegation.c.session == bindparam("of"))
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
_BEGUN_FOR = (
    select(
        delegation.c.caller_session,
        delegation.c.workspace,
        delegation.c.branch,
        delegation.c.folder,
    )
    .join(session, session.c.id == delegation.c.session)
    .join(place, place.c.id == session.c.place)
    .where(delegation.c.session == bindparam("of"), place.c.service == SERVICE)
    .order_by(delegation.c.id)
    .limit(1)
)
GROUP_OVER = "over:"
"""What comes before the name of a group in the mark that tells that it is over."""
_HELD = (
    select(delegation.c.id)
    .where(
        delegation.c.session == bindparam("of"),
        delegation.c.kind == "race",
        ~select(told.c.mark).where(told.c.mark == GROUP_OVER + delegation.c.group).exists(),
    )
    .limit(1)
)
_REVIEWED = (
    select(delegation.c.caller_session)
    .where(
        delegation.c.session == bindparam("of"),
        delegation.c.kind == "review",
        delegation.c.workspace == "read-only",
    )
    .order_by(delegation.c.id.desc())
    .limit(1)
)
"""The author's own turns have the same kind, but no such workspace."""
SAID = (
    select(transcript.c.kind, transcript.c.text, transcript.c.data)
    .where(transcript.c.session == bindparam("in"), transcript.c.turn == bindparam("of"))
    .where(transcript.c.kind.in_(("text", "tool")))
    .order_by(transcript.c.id)
)


class DelegationTree(Store):
    """The trees of delegated turns."""

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

    def begun_for(self, session_id: int) -> DelegatedWork | None:
        """Read what a session was begun for; None if people began it."""
        row = self._database.one(_BEGUN_FOR, of=session_id)
        return (
            None
            if row is None
            else DelegatedWork(row.caller_session, row.workspace, row.branch, row.folder)
        )

    def author_of(self, session_id: int) -> int | None:
        """Return the session whose work another one was asked to review; None if it was not."""
        row = self._database.one(_REVIEWED, of=session_id)
        return None if row is None else int(row.caller_session)

    def is_held(self, session_id: int) -> bool:
        """Tell whether the work of a session waits for people to pick it."""
        return self._database.one(_HELD, of=session_id) is not None

    def _find(self, statement: Select[Any], number: int) -> Branch | None:
        row = self._database.one(statement, of=number)
        return branch_of(row) if row else None


def note_shown(connection: Connection, content: PostContent, now: float) -> None:
    """Record which ends the last post of a turn tells, inside the caller's commit."""
    told = [line.id for line in content.delegated if line.is_over]
    if told:
        which = delegation.c.id.in_(told) & delegation.c.shown_at.is_(None)
        connection.execute(update(delegation).where(which).values(shown_at=now))


def _under(connection: Connection, turn_id: int) -> Iterator[Branch]:
    for row in connection.execute(_BY_TURN, {"of": turn_id}).all():
        yield branch_of(row)
        yield from _under(connection, row.turn)


def branch_of(row: Row[Any]) -> Branch:
    """Read one delegated turn."""
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


def read_last_words(connection: Connection, session_id: int, turn_id: int) -> str:
    """Read the words that a turn ended with; of a turn that works, what it has said so far."""
    return find_last_words(connection.execute(SAID, {"in": session_id, "of": turn_id}).all())


def find_last_words(rows: Iterable[Any]) -> str:
    """Join what a turn said after its last call, or, if it said nothing then, before it."""
    parts = [""]
    for row in rows:
        if row.kind == "tool":
            parts.append("")
        elif not row.data.get("parent"):
            parts[-1] += row.text
    return next((part.strip() for part in reversed(parts) if part.strip()), "")
