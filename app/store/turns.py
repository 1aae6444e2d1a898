"""Stores turns from queued to their end, and recovers those that a crash cut off.

A turn ends once: a second end changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import (
    Connection,
    bindparam,
    func,
    select,
    true,
    type_coerce,
    update,
)

from app.model.background import Woken
from app.model.posts import NewPost, PostContent
from app.model.steering import Steered
from app.model.types import OPEN_TURN_STATES, Entry, Message, Turn, TurnRef, TurnState
from app.model.updates import AskRequest
from app.store.commits.admission import SUSPENDED
from app.store.commits.asks import close_asks, leave_questions, open_ask
from app.store.commits.endings import NOT_NEEDED, RUNNING, end_turn
from app.store.commits.own_turns import OwnTurn, OwnTurnLimits, begin_own
from app.store.commits.recovery import ASK_LOST, recover_turns, requeue_interrupted
from app.store.commits.steering import hand_back, note_read, note_taken, settle_steered
from app.store.database import Store, write
from app.store.guarding import Kept
from app.store.posts import insert_post, keep_content, turn_post_key
from app.store.sealed import OF_MESSAGE
from app.store.tables import (
    ASK_STAYS,
    OPEN_TURN,
    ask,
    delegation,
    heard,
    message,
    sealed,
    session,
    surface,
    transcript,
    turn,
)
from app.store.transcript import insert_entries
from app.store.tree import note_shown
from app.store.values import message_of, turn_of

_TURN = select(turn, surface.c.service, surface.c.external, surface.c.agent).join(
    surface, turn.c.surface == surface.c.id
)
_ONE = _TURN.where(turn.c.id == bindparam("of"))
_NEXT = (
    _TURN.add_columns(SUSPENDED.label("suspended"))
    .where(turn.c.session == bindparam("of"), turn.c.state == TurnState.QUEUED)
    # What an agent began goes on already: it waits for nothing that people hold back.
    .order_by(turn.c.woken_by.is_(None), turn.c.id)
    .limit(1)
)
_QUEUED = (
    select(turn.c.session, turn.c.id)
    .where(turn.c.state == TurnState.QUEUED, turn.c.held.is_(False))
    .order_by(turn.c.id)
)
_MESSAGES = (
    select(
        message,
        transcript.c.speaker,
        func.coalesce(message.c.edited, type_coerce(sealed.c.value, Kept), transcript.c.text).label(
            "text"
        ),
        transcript.c.at,
        heard.c.steered,
    )
    .join(heard, heard.c.message == message.c.id)
    .join(transcript, transcript.c.id == message.c.id)
    .outerjoin(sealed, OF_MESSAGE)
    .where(heard.c.turn == bindparam("of"))
    .order_by(message.c.id)
)

_HEARERS = (
    select(session.c.agent)
    .join(heard, heard.c.session == session.c.id)
    .where(heard.c.message.in_(select(heard.c.message).where(heard.c.turn == bindparam("of"))))
)

_OPEN_DELEGATIONS = (
    select(delegation.c.id)
    .join(turn, turn.c.id == delegation.c.turn)
    .where(delegation.c.caller_session == bindparam("of"), OPEN_TURN, turn.c.stopped.is_(False))
    .limit(1)
)

START = (
    update(turn)
    .where(
        turn.c.id == bindparam("of"),
        turn.c.state == TurnState.QUEUED,
        turn.c.held.is_(False),
        ~SUSPENDED,
    )
    .values(state=TurnState.STARTING)
)
"""Starts a queued turn."""
_PROMPT = (
    update(turn)
    .where(
        turn.c.id == bindparam("of"),
        turn.c.state == TurnState.STARTING,
        turn.c.stopped.is_(False),
    )
    .values(
        state=TurnState.PROMPTED,
        prompt=bindparam("prompt"),
        told=bindparam("told"),
        system=bindparam("system"),
        steerable=bindparam("steerable"),
    )
    .returning(turn.c.session)
)
_FOLLOW = (
    update(turn)
    .where(
        turn.c.id == bindparam("of"),
        turn.c.state == TurnState.STARTING,
        turn.c.stopped.is_(False),
    )
    .values(state=TurnState.PROMPTED, steerable=bindparam("steerable"))
)
_KNOW = (
    update(session)
    .where(session.c.id == bindparam("of"), session.c.generation == bindparam("in"))
    .values(acp_session_id=bindparam("acp_session_id"), standing=bindparam("standing"))
)


def messages_of(connection: Connection, turn_id: int) -> list[Message]:
    """List the messages that became part of a turn, in order."""
    return [message_of(row) for row in connection.execute(_MESSAGES, {"of": turn_id})]


class TurnStore(Store):
    """The turn port."""

    def turn(self, turn_id: int) -> Turn | None:
        """Read one turn."""
        row = self._database.one(_ONE, of=turn_id)
        return turn_of(row) if row else None

    async def turns(self, session_id: int) -> Sequence[Turn]:
        """List the turns of a session, oldest first."""
        rows = await self._database.all(
            _TURN.where(turn.c.session == session_id).order_by(turn.c.id)
        )
        return [turn_of(row) for row in rows]

    def next_turn(self, session_id: int) -> Turn | None:
        """Return a session's next queued turn, unless it is held or paused."""
        row = self._database.one(_NEXT, of=session_id)
        is_free = row is not None and not (row.held or row.paused or row.suspended)
        return turn_of(row) if row is not None and is_free else None

    async def queued(self) -> Sequence[TurnRef]:
        """List the turns that are queued and not held, oldest first."""
        return [TurnRef(row.session, row.id) for row in await self._database.all(_QUEUED)]

    def waiting(self, session_id: int) -> int:
        """Count the turns of a session that wait."""
        row = self._database.one(
            select(func.count())
            .select_from(turn)
            .where(turn.c.session == session_id, turn.c.state == TurnState.QUEUED)
        )
        return int(row[0]) if row else 0

    def has_delegations(self, session_id: int) -> bool:
        """Tell whether other agents still work on what a session asked for."""
        return self._database.one(_OPEN_DELEGATIONS, of=session_id) is not None

    def messages(self, turn_id: int) -> Sequence[Message]:
        """List the messages that became part of a turn, in order."""
        return self._database.look(lambda connection: messages_of(connection, turn_id))

    def hearers(self, turn_id: int) -> frozenset[str]:
        """Return which agents got any message of a turn."""
        return frozenset(agent for (agent,) in self._database.some(_HEARERS, of=turn_id))

    @write
    def starting(self, connection: Connection, turn_id: int) -> bool:
        """Start a queued turn; False if it is no longer queued."""
        return connection.execute(START, {"of": turn_id}).rowcount > 0

    @write
    def prompted(
        self,
        connection: Connection,
        turn_id: int,
        prompt: str,
        acp_session_id: str,
        generation: int,
        *,
        told: int = 0,
        system: str = "",
        standing: Mapping[str, str] | None = None,
        steerable: bool = False,
        messages: Collection[int] = (),
        read: Collection[int] = (),
    ) -> bool:
        """Record what the agent is about to be told, before it is sent.

        The prompt tells `messages`; those that were `read` the agent knows from an earlier one.
        """
        prompted = {"of": turn_id, "prompt": prompt, "told": told, "system": system}
        row = connection.execute(_PROMPT, {**prompted, "steerable": steerable}).first()
        if row is None:
            return False
        settle_steered(connection, turn_id, messages, read)
        known = {"of": row.session, "in": generation, "acp_session_id": acp_session_id}
        kept = {"acp_session_id": acp_session_id, "parts": dict(standing or {})}
        connection.execute(_KNOW, known | {"standing": kept})
        return True

    @write
    def begin_own(
        self, connection: Connection, session_id: int, woken: Woken, limits: OwnTurnLimits
    ) -> OwnTurn:
        """Queue a turn that an agent began, unless another one comes, or it began too many."""
        return begin_own(connection, session_id, woken, limits, self._now())

    @write
    def follow(self, connection: Connection, turn_id: int, *, steerable: bool) -> bool:
        """Record that a turn follows what its agent began; False if it was stopped."""
        return connection.execute(_FOLLOW, {"of": turn_id, "steerable": steerable}).rowcount > 0

    @write
    def finish(
        self,
        connection: Connection,
        turn_id: int,
        state: TurnState,
        content: PostContent,
        entries: Sequence[Entry],
        error: str = "",
        *,
        more: Sequence[NewPost] = (),
        unsure: Collection[int] = (),
    ) -> tuple[int, ...] | None:
        """End a turn with its last entries, its final post and more; return the posts to send.

        `unsure` are messages that were sent into it and of which the agent said nothing.
        """
        now = self._now()
        if not _is_open(connection, turn_id):
            return None
        posts = end_turn(connection, turn_id, state, content, now, error, unsure=unsure)
        insert_entries(connection, entries, now)
        note_shown(connection, content, now)
        further = [insert_post(connection, new, now) for new in more]
        return (*posts, *further)

    async def untaken(self, turn_id: int) -> Sequence[Message]:
        """List the messages that are to go into a running turn and that its agent has not taken."""
        untaken = _MESSAGES.where(heard.c.steered == Steered.SENT)
        return [message_of(row) for row in await self._database.all(untaken, of=turn_id)]

    @write
    def taken(self, connection: Connection, turn_id: int, number: int) -> None:
        """Note that the agent of a turn has a message."""
        note_taken(connection, turn_id, number, self._now())

    @write
    def read(self, connection: Connection, turn_id: int) -> None:
        """Note that the agent of a turn has read all that it took."""
        note_read(connection, turn_id, Steered.TAKEN)

    @write
    def hand_back(self, connection: Connection, turn_id: int, number: int) -> Sequence[int]:
        """Queue a message that the agent of a turn did not take; return the posts to send."""
        return hand_back(connection, turn_id, self._now(), only={number})

    @write
    def park(
        self, connection: Connection, turn_id: int, content: PostContent, asks: Sequence[int]
    ) -> bool:
        """Park a turn: it waits for people without a process."""
        now = self._now()
        row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
        unanswered = connection.execute(
            select(func.count()).where(ask.c.id.in_(asks), ask.c.state == "open")
        ).scalar_one()
        ready = row.state == TurnState.PROMPTED and not row.stopped
        if not ready or not asks or unanswered < len(asks):
            return False
        parked = update(turn).where(turn.c.id == turn_id)
        connection.execute(parked.values(state=TurnState.PARKED))
        # All of them: one may have been stored just now, without the caller knowing.
        of_turn = (ask.c.turn == turn_id) & (ask.c.state == "open")
        connection.execute(update(ask).where(of_turn).values(adrift=True))
        keep_content(connection, turn_post_key(turn_id), content)
        parked_for = Entry("notice", content.note, session=row.session, turn=turn_id)
        insert_entries(connection, [parked_for], now)
        return True

    @write
    def pause(
        self,
        connection: Connection,
        turn_id: int,
        content: PostContent,
        request: AskRequest,
        *,
        deadline: float,
        resume_at: float | None,
    ) -> tuple[int, ...] | None:
        """Put a turn back until someone continues it; return the posts to send."""
        now = self._now()
        row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
        if row.state not in RUNNING or row.stopped:
            return None
        leave_questions(connection, ask.c.turn == turn_id)
        ended = (ask.c.turn == turn_id) & ~ASK_STAYS
        gone = close_asks(connection, ended, "cancelled", NOT_NEEDED, now)
        reached = row.state == TurnState.PROMPTED
        connection.execute(
            update(turn)
            .where(turn.c.id == turn_id)
            .values(
                state=TurnState.QUEUED,
                paused=request.call,
                continued=row.continued or reached,
            )
        )
        keep_content(connection, turn_post_key(turn_id), content)
        _, post_id = open_ask(
            connection,
            request,
            TurnRef(row.session, turn_id),
            now,
            deadline=deadline,
            resume_at=resume_at,
            adrift=True,
        )
        return (*gone, post_id)

    @write
    def interrupt(self, connection: Connection, turn_id: int) -> None:
        """Put back a turn that a graceful shutdown cut off; this does not count as a crash."""
        now = self._now()
        row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
        if row.state not in RUNNING:
            return
        leave_questions(connection, ask.c.turn == turn_id)
        lived = (ask.c.turn == turn_id) & ask.c.adrift.is_(False)
        close_asks(connection, lived, "lost", ASK_LOST, now)
        requeue_interrupted(connection, row, now)

    @write
    def recover(self, connection: Connection) -> Sequence[TurnRef]:
        """Recover what the last run left, and list the sessions that have work."""
        recover_turns(connection, true(), self._now())
        return [TurnRef(row.session, row.id) for row in connection.execute(_QUEUED)]


def _is_open(connection: Connection, turn_id: int) -> bool:
    state = connection.execute(select(turn.c.state).where(turn.c.id == turn_id)).scalar()
    return state in OPEN_TURN_STATES
