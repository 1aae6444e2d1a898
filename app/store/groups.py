"""Stores what is told of groups of delegations, each once, and which groups are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, bindparam, func, select

from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.reviews import Picked
from app.model.types import BridgeSessionRequest, TurnRef
from app.model.updates import AskRequest
from app.store.commits.admission import enter
from app.store.commits.asks import open_ask
from app.store.database import Database
from app.store.decisions import place_of
from app.store.delegations import read_last_words
from app.store.dialects import insert
from app.store.proposals import say_at_home
from app.store.tables import OPEN_TURN, ask, delegation, place, told, turn

_OVER = "over:"
_UNFINISHED = (
    select(delegation.c.group)
    .distinct()
    .where(
        delegation.c.group != "",
        ~select(told.c.mark).where(told.c.mark == _OVER + delegation.c.group).exists(),
    )
)
_RUNNING = (
    select(delegation.c.id)
    .join(turn, turn.c.id == delegation.c.turn)
    .join(place, place.c.id == delegation.c.root_place)
    .where(
        place.c.service == bindparam("service"),
        place.c.name == bindparam("called"),
        delegation.c.group != "",
        OPEN_TURN,
    )
)
_HELD = (
    select(delegation.c.id)
    .where(
        delegation.c.session == bindparam("of"),
        delegation.c.kind == "race",
        ~select(told.c.mark).where(told.c.mark == _OVER + delegation.c.group).exists(),
    )
    .limit(1)
)
_ASKED = select(ask.c.state, ask.c.answer).where(
    ask.c.kind == "race", ask.c.call == bindparam("of")
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
_LAST_DONE = select(func.max(turn.c.id)).where(
    turn.c.session == bindparam("of"), turn.c.state == "done", turn.c.successor.is_(None)
)


class GroupStore:
    """The port for groups."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def enter(self, heard: Heard, agent: str) -> int:
        """Return the session of an agent in the place of a message; it is begun if needed."""
        request = BridgeSessionRequest(
            external_session_id=heard.external,
            service_name=heard.place.service,
            agent_name=agent,
            prompt="",
            speaker=heard.speaker,
            message_id=heard.message_id,
            surface=heard.place,
            descriptive_name=heard.title,
        )

        def write(connection: Connection) -> int:
            return enter(connection, request, place_of(connection, heard), self._now())

        return await self._database.writer.run(write)

    def unfinished(self) -> Sequence[str]:
        """List the groups that are not over."""
        return [group for (group,) in self._database.some(_UNFINISHED)]

    async def end(self, session_id: int, group: str, words: str = "") -> tuple[int, ...]:
        """Record that a group is over, and say so; return the posts to send."""
        return await self.tell(session_id, f"{_OVER}{group}", words)

    def author_of(self, session_id: int) -> int | None:
        """Return the session whose work another one was asked to review; None if it was not."""
        row = self._database.one(_REVIEWED, of=session_id)
        return None if row is None else int(row.caller_session)

    def running(self, where: PlaceKey) -> Sequence[int]:
        """List the delegations that work now because of a person's command in a place."""
        named = {"service": where.service, "called": where.name}
        return [number for (number,) in self._database.some(_RUNNING, **named)]

    async def ask(
        self, group: str, ref: TurnRef, request: AskRequest, *, deadline: float
    ) -> tuple[int, ...]:
        """Ask people once about a group, where it began; return the posts to send."""

        def write(connection: Connection) -> tuple[int, ...]:
            if connection.execute(_ASKED, {"of": group}).first() is not None:
                return ()
            now = self._now()
            shown = open_ask(connection, request, ref, now, deadline=deadline, adrift=True)
            return (shown[1],)

        return await self._database.writer.run(write)

    def picked(self, group: str) -> Picked | None:
        """Read what people answered about a group; None if they were not asked."""
        row = self._database.one(_ASKED, of=group)
        return None if row is None else Picked(row.state, row.answer or "")

    def is_held(self, session_id: int) -> bool:
        """Tell whether the work of a session waits for people to pick it."""
        return self._database.one(_HELD, of=session_id) is not None

    def last_words(self, session_id: int) -> str:
        """Read what the last turn of a session that is done ended with."""

        def read(connection: Connection) -> str:
            last = connection.execute(_LAST_DONE, {"of": session_id}).scalar()
            return "" if last is None else read_last_words(connection, session_id, last)

        return self._database.look(read)

    async def tell(
        self, session_id: int, mark: str, words: str, agent: str = ""
    ) -> tuple[int, ...]:
        """Say something once where a session began; return the posts to send."""

        def write(connection: Connection) -> tuple[int, ...]:
            new = {"session": session_id, "mark": mark}
            first = connection.execute(insert(told).on_conflict_do_nothing(), new).rowcount
            if not first or not words:
                return ()
            return (say_at_home(connection, session_id, mark, words, self._now(), agent),)

        return await self._database.writer.run(write)
