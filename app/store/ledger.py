"""Stores asks: each is answered once, in time, and used once; a late answer starts a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, case, func, or_, select, update

from app.model.asks import (
    CANCEL,
    GO_ON,
    HAND_OVER,
    OWN,
    TAKE,
    OpenedAsk,
    TakenAnswer,
    by_person,
    receiver,
)
from app.model.conversations import EVERYTHING, ListFilter
from app.model.keys import AreaOf, PlaceKey, SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import OPEN_TURN_STATES, BridgeSessionRequest, TurnRef, TurnState
from app.model.updates import ASK_PERSON, Ask, AskRequest
from app.store.commits.admission import attach, choose, hold, remember, tell_suspended
from app.store.commits.asks import (
    close_ask,
    decide_note,
    decide_offer,
    open_ask,
    shown_in,
    tell_answer,
)
from app.store.commits.endings import end_if_idle, end_waiting, go_on_after, stop_session
from app.store.database import Store, write
from app.store.grants import write_grant
from app.store.posts import insert_post
from app.store.tables import ASK_IS_OPEN, ASK_STAYS, ask, place, session, surface, turn
from app.store.turns import messages_of
from app.store.values import ask_of

EXPIRED = Note(NoteCode.EXPIRED)
WITHDRAWN = Note(NoteCode.WITHDRAWN)

_ONE = select(ask).where(ask.c.id == bindparam("of"))
_STATE = select(turn.c.state).where(turn.c.id == bindparam("of"))
_OPEN_IN = (
    select(ask)
    .where(or_(ask.c.session == bindparam("of"), ask.c.host == bindparam("of")), ASK_IS_OPEN)
    .order_by(ask.c.id)
)
_LATE = (
    select(ask)
    .where(
        ask.c.turn == bindparam("of"),
        ask.c.state == "answered",
        ask.c.adrift.is_(True),
        ask.c.kind.not_in(
            ("pause", "repository", "offer", "memory", "schedule", "race", "background")
        ),
    )
    .order_by(ask.c.id)
)
_DUE = select(
    func.min(case((ask.c.resume_at < ask.c.deadline, ask.c.resume_at), else_=ask.c.deadline))
).where(ASK_IS_OPEN)


class AskStore(Store):
    """The ask port."""

    @write
    def open(
        self, connection: Connection, request: AskRequest, ref: TurnRef, *, deadline: float
    ) -> OpenedAsk | None:
        """Store an ask and its post, or find the same ask from before the session was parked."""
        now = self._now()
        state = connection.execute(_STATE, {"of": ref.turn}).scalar_one()
        if state not in OPEN_TURN_STATES:
            return None
        known = _asked_before(connection, request, ref, now)
        if known is None:
            # The turn is being parked: its process is about to end.
            adrift = state == TurnState.PARKED
            ask_id, post_id = open_ask(
                connection, request, ref, now, deadline=deadline, adrift=adrift
            )
            return OpenedAsk(_read(connection, ask_id), (post_id,))
        posts = _take_over(connection, known, ref, now)
        return OpenedAsk(_read(connection, known.id), posts)

    def is_known(self, request: AskRequest, ref: TurnRef) -> bool:
        """Tell whether a request would find an ask that there is."""
        return self._database.look(
            lambda connection: _asked_before(connection, request, ref, self._now()) is not None
        )

    async def is_confirmed(self, turn_id: int, call: str) -> bool:
        """Tell whether a person let a turn go on that waited for this."""
        query = select(ask.c.id).where(
            ask.c.turn == turn_id, ask.c.call == call, ask.c.answer == GO_ON
        )
        return bool(await self._database.all(query))

    @write
    def leave(self, connection: Connection, ask_id: int) -> Ask:
        """Stop waiting for the answer to a tool's question; return it as it is."""
        unused = ask.c.state == "open"
        connection.execute(update(ask).where(ask.c.id == ask_id).values(adrift=unused))
        return _read(connection, ask_id)

    @write
    def answer(
        self, connection: Connection, ask_id: int, answer: str, by: str, *, speaker: str = ""
    ) -> TakenAnswer | None:
        """Answer an ask, with an option or in words; None if it is no longer open."""
        return answer_ask(
            connection, ask_id, answer, by, self._now(), speaker=speaker, area_of=self._area_of
        )

    @write
    def withdraw(self, connection: Connection, ask_id: int) -> TakenAnswer:
        """Close an open ask that its agent took back."""
        row = connection.execute(_ONE, {"of": ask_id}).one()
        if row.state != "open":
            return TakenAnswer()
        posts = close_ask(connection, row, {"state": "withdrawn"}, WITHDRAWN, self._now())
        return TakenAnswer(tuple(posts), asks=(ask_id,))

    @write
    def expire(self, connection: Connection) -> TakenAnswer:
        """Close every expired ask, and end the turns that waited only for it."""
        now = self._now()
        rows = connection.execute(select(ask).where(ASK_IS_OPEN, ask.c.deadline <= now)).all()
        posts = [post for row in rows for post in _expire(connection, row, now)]
        return TakenAnswer(
            posts=tuple(posts),
            asks=tuple(row.id for row in rows),
            sessions=tuple({each for row in rows for each in _sessions(row)}),
        )

    def ask(self, ask_id: int) -> Ask | None:
        """Read one ask."""
        row = self._database.one(_ONE, of=ask_id)
        return ask_of(row) if row else None

    def surface(self, ask_id: int) -> SessionKey | None:
        """Return the conversation in which an ask is shown."""

        def read(connection: Connection) -> SessionKey | None:
            row = connection.execute(_ONE, {"of": ask_id}).first()
            return None if row is None else shown_in(connection, row.turn)

        return self._database.look(read)

    def open_in(self, session_id: int) -> Sequence[Ask]:
        """List the asks that can be answered where a session is, oldest first."""
        now = self._now()
        return [each for each in self._some(_OPEN_IN, session_id) if each.deadline > now]

    def late(self, turn_id: int) -> Sequence[Ask]:
        """List the answers that started a turn and that its agent does not know yet."""
        return self._some(_LATE, turn_id)

    def due(self) -> float | None:
        """Return when the next ask expires or answers itself."""
        row = self._database.one(_DUE)
        return None if row is None or row[0] is None else float(row[0])

    def resumable(self) -> Sequence[int]:
        """List the asks that are due to answer themselves."""
        due = select(ask.c.id).where(ASK_IS_OPEN, ask.c.resume_at <= self._now())
        return [row.id for row in self._database.some(due)]

    async def asks(self, only: ListFilter = EVERYTHING, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks, oldest first."""
        shown_in = func.coalesce(ask.c.host, ask.c.session)
        query = (
            select(ask)
            .join(session, session.c.id == ask.c.session)
            .where(ask.c.id > after)
            .order_by(ask.c.id)
            .limit(limit)
        )
        if only.agent is not None:
            query = query.where(session.c.agent == only.agent)
        if only.service is not None:
            here = session.alias()
            query = query.join(here, here.c.id == shown_in).join(place, place.c.id == here.c.place)
            query = query.where(place.c.service == only.service)
        if only.state is not None:
            query = query.where(ask.c.state == only.state)
        if only.since is not None:
            query = query.where(ask.c.created_at >= only.since)
        return [ask_of(row) for row in await self._database.all(query)]

    def _some(self, query: Any, number: int) -> list[Ask]:
        return [ask_of(row) for row in self._database.some(query, of=number)]


def answer_ask(
    connection: Connection,
    ask_id: int,
    answer: str,
    by: str,
    now: float,
    *,
    speaker: str = "",
    area_of: AreaOf,
) -> TakenAnswer | None:
    """Answer an ask inside the caller's commit; None if it is no longer open."""
    row = connection.execute(_ONE, {"of": ask_id}).first()
    if row is None or row.state != "open" or row.deadline <= now:
        return None
    if row.kind == "repository":
        of_session = session.c.id == row.session
        place_id = connection.execute(select(session.c.place).where(of_session)).scalar_one()
        choose(connection, place_id, answer)
        remember(connection, place_id, answer, area_of)
        return settle_choices(connection, place_id, answer, by, now)
    posts, note = _close_answered(connection, row, answer, by, now, speaker)
    write_grant(connection, row, answer, by, now, speaker=speaker)
    if row.kind == "pause":
        turns, more = _decide_pause(connection, row, answer, now)
    elif row.kind == "offer":
        turns, more = decide_offer(connection, row, answer, by, speaker, now)
    elif row.kind == "memory":
        decide_note(connection, row.id, keep=answer == TAKE)
        turns, more = [], []
    elif row.kind in {"schedule", "race", "background"}:
        turns, more = [], []  # the book of schedules makes it, or the race ships it
    elif row.tool_kind == ASK_PERSON and _is_over(connection, row.turn):
        ref, post = tell_answer(connection, row.id, now)
        turns, more = [ref], [post]
    else:
        turns, more = _decide_parked(connection, row, replace(note, code=NoteCode.CONTINUED), now)
    sessions = dict.fromkeys((*_sessions(row), *(ref.session for ref in turns)))
    told = tell_suspended(connection, [ref.turn for ref in turns], now)
    return TakenAnswer((*posts, *more, *told), tuple(turns), (ask_id,), tuple(sessions))


def _sessions(row: Row[Any]) -> tuple[int, ...]:
    """Return the session whose ask it is, and the one in whose place it is shown."""
    return (row.session,) if row.host is None else (row.session, row.host)


def settle_choices(
    connection: Connection, place_id: int, answer: str, by: str, now: float
) -> TakenAnswer:
    """Resume every turn of a place that waits for someone to pick a repository."""
    rows = connection.execute(
        select(ask)
        .join(session, session.c.id == ask.c.session)
        .where(session.c.place == place_id, ask.c.kind == "repository", ASK_IS_OPEN)
        .order_by(ask.c.id)
    ).all()
    posts: list[int] = []
    for row in rows:
        posts += _close_answered(connection, row, answer, by, now)[0]
        connection.execute(update(turn).where(turn.c.id == row.turn).values(paused=None))
    return TakenAnswer(
        posts=tuple(posts),
        turns=tuple(TurnRef(row.session, row.turn) for row in rows),
        asks=tuple(row.id for row in rows),
        sessions=tuple(row.session for row in rows),
    )


def _close_answered(
    connection: Connection, row: Row[Any], answer: str, by: str, now: float, speaker: str = ""
) -> tuple[list[int], Note]:
    """Close an ask as answered; return the post that says so, and its note."""
    connection.execute(update(ask).where(ask.c.id == row.id).values(speaker=speaker))
    change = {"state": "answered", "answer": answer, "answered_by": by}
    answered = replace(ask_of(row), state="answered", answer=answer, answered_by=by)
    note = Note(NoteCode.ANSWERED, by, answered.answer_name)
    data = {"decided": dict(by_person(answered))}
    return close_ask(connection, row, change, note, now, data), note


def _decide_parked(
    connection: Connection, row: Row[Any], note: Note, now: float
) -> tuple[list[TurnRef], list[int]]:
    """Start the turn that continues the work of a parked one."""
    if connection.execute(_STATE, {"of": row.turn}).scalar_one() != TurnState.PARKED:
        return [], []
    ref, posts = go_on_after(connection, row.turn, note, now)
    return [ref], posts


def _is_over(connection: Connection, turn_id: int) -> bool:
    return connection.execute(_STATE, {"of": turn_id}).scalar_one() not in OPEN_TURN_STATES


def _decide_pause(
    connection: Connection, row: Row[Any], answer: str, now: float
) -> tuple[list[TurnRef], list[int]]:
    """Resume a paused turn, give it to another agent, or end it as a stop would."""
    if answer == CANCEL:
        return [], stop_session(connection, row.session, now, parked=False)
    if answer.startswith(HAND_OVER):
        return _pass_on(connection, row, answer, now)
    assert answer == GO_ON, "a pause has no other options"
    connection.execute(update(turn).where(turn.c.id == row.turn).values(paused=None))
    if row.call == "budget":
        of_session = session.c.id == row.session
        connection.execute(update(session).where(of_session).values(cleared=session.c.spent))
    return [TurnRef(row.session, row.turn)], []


def _pass_on(
    connection: Connection, row: Row[Any], answer: str, now: float
) -> tuple[list[TurnRef], list[int]]:
    """End a paused turn and give its messages, and its place, to another agent."""
    turn_id, agent = row.turn, answer.removeprefix(HAND_OVER)
    old = connection.execute(
        select(
            surface.c.service, surface.c.external, surface.c.place, session.c.title, place.c.name
        )
        .join(turn, turn.c.surface == surface.c.id)
        .join(session, session.c.id == turn.c.session)
        .join(place, place.c.id == surface.c.place)
        .where(turn.c.id == turn_id)
    ).one()
    note = Note(NoteCode.HANDED_OVER, about=receiver(ask_of(row), agent))
    posts = end_waiting(connection, turn_id, note, now)
    turns: list[TurnRef] = []
    for said in messages_of(connection, turn_id):
        request = BridgeSessionRequest(
            external_session_id=old.external,
            service_name=old.service,
            agent_name=agent,
            prompt=said.text,
            speaker=said.speaker,
            message_id=said.message_id,
            surface=PlaceKey(old.service, old.name),
            files=said.files,
            descriptive_name=old.title,
        )
        ref, post = attach(connection, request, old.place, said.number, now)
        turns.append(ref)
        posts.append(post)
    hold(connection, old.place, agent)
    connection.execute(update(place).where(place.c.id == old.place).values(latest=agent))
    return list(dict.fromkeys(turns)), list(dict.fromkeys(posts))


def _asked_before(
    connection: Connection, request: AskRequest, ref: TurnRef, now: float
) -> Row[Any] | None:
    """Find the ask that a request renews: no process waits for it, and its arguments match."""
    if not request.arguments_hash:
        return None
    rows = connection.execute(
        select(ask)
        .join(session, session.c.id == ask.c.session)
        .where(
            ask.c.session == ref.session,
            ask.c.generation == session.c.generation,
            ask.c.adrift.is_(True) | ASK_STAYS,
            ask.c.kind == request.kind,
            ask.c.arguments_hash == request.arguments_hash,
            (ask.c.state == "open") & (ask.c.deadline > now)
            | (ask.c.state == "answered") & (ask.c.turn == ref.turn),
        )
        .order_by(ask.c.state, ask.c.id)
    ).all()
    offered = _of_agent(option.id for option in request.options)
    return next((row for row in rows if _of_agent(o["id"] for o in row.options) == offered), None)


def _of_agent(options: Iterable[str]) -> set[str]:
    return {option for option in options if not option.startswith(OWN)}


def _take_over(connection: Connection, row: Row[Any], ref: TurnRef, now: float) -> tuple[int, ...]:
    """Move an ask to this turn; end the turn that was parked only for it."""
    connection.execute(update(ask).where(ask.c.id == row.id).values(turn=ref.turn, adrift=False))
    if row.turn == ref.turn:
        return ()
    return tuple(end_if_idle(connection, row.turn, TurnState.DONE, Note(NoteCode.ASKED_AGAIN), now))


def _expire(connection: Connection, row: Row[Any], now: float) -> list[int]:
    posts = close_ask(connection, row, {"state": "expired"}, EXPIRED, now)
    if row.kind == "memory":
        decide_note(connection, row.id, keep=False)
    if row.kind in {"offer", "memory", "schedule", "race", "background"}:
        return posts
    # The agent is told with its next prompt.
    connection.execute(update(ask).where(ask.c.id == row.id).values(adrift=True))
    target = shown_in(connection, row.turn)
    notice = PostContent(kind="notice", reason=Note(NoteCode.EXPIRED_ASK, about=row.title))
    told = NewPost(f"expired:{row.id}", target, notice, row.session, row.turn)
    posts.append(insert_post(connection, told, now))
    return posts + end_if_idle(connection, row.turn, TurnState.CANCELLED, EXPIRED, now)


def _read(connection: Connection, ask_id: int) -> Ask:
    return ask_of(connection.execute(_ONE, {"of": ask_id}).one())
