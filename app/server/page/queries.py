"""Reads what a page shows: agents, the list of threads, one thread with its state."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.amounts import money
from app.core.keys import SERVICE_NAME, PlaceKey
from app.core.types import Session, TurnState
from app.errors import NotFound
from app.server.page.view.thread import Fold
from app.server.page.view.views import (
    STOPPABLE,
    Agent,
    Cast,
    Decided,
    Member,
    Place,
    ThreadList,
    Trouble,
    Waiting,
    shown_state,
    stoppable,
    thread_list,
    tokens,
)
from app.server.parts import Parts
from app.services import label_of

ROWS_AT_ONCE = 1_000
"""Rows per read while a page is built: few reads, little memory."""
DECISIONS = 6
"""Decisions shown next to a thread: those that people may still remember."""
WAITING_CHARACTERS = 200
"""Characters shown of a queued message: enough to recognise it."""


@dataclass(slots=True)
class Reading:
    """The part of a thread that was read, and the number of its last row."""

    fold: Fold
    last: int


def place_key(service: str, name: str) -> PlaceKey:
    """Return the key of a place from its address.

    Raises:
        NotFound: there is no such service.
    """
    if not SERVICE_NAME.fullmatch(service):
        raise NotFound("service", service)
    return PlaceKey(service, name)


def cast_of(parts: Parts) -> Cast:
    """List the agents as the page shows them."""
    agents = (
        Agent(
            name=card.name,
            title=card.display_name,
            description=card.description,
            isolation=card.isolation,
            command=card.command,
            default=card.default,
            examples=card.examples,
        )
        for card in parts.agents.values()
    )
    return Cast.of(agents, label_of)


def troubles_of(parts: Parts) -> tuple[Trouble, ...]:
    """List the connection problems of agents, with the link that repairs each."""
    return tuple(
        Trouble(
            words if words.startswith(name) else f"{name}: {words}",
            f"/install/{name.replace(':', '/')}" if parts.installs.knows(name) else "",
        )
        for name, words in parts.troubles().items()
        if words
    )


async def usual_agent(parts: Parts) -> str:
    """Return the agent of a new thread: the one used last, else the default."""
    for session in await parts.sessions.recent(agent=None, state=None, before=None, limit=1):
        if session.key.agent in parts.agents:
            return session.key.agent
    return next(card.name for card in parts.agents.values() if card.default)


async def threads_of(
    parts: Parts, cast: Cast, current: PlaceKey | None, limit: int, more: str
) -> ThreadList:
    """List the threads."""
    found = await parts.sessions.threads(limit=limit)
    return thread_list(found, cast, current=current, more=more if len(found) == limit else "")


async def read_thread(
    parts: Parts, key: PlaceKey, *, begin: int, until: int | None = None
) -> Reading:
    """Fold the rows of a place, between two row numbers."""
    fold = Fold(_AgentOf(parts), whole=begin == 0)
    last = begin
    while rows := await parts.transcript.read_place(key, after=last, limit=ROWS_AT_ONCE):
        shown = [row for row in rows if until is None or row.id <= until]
        fold.add(shown)
        last = shown[-1].id if shown else last
        if len(shown) < len(rows) or len(rows) < ROWS_AT_ONCE:
            break
    return Reading(fold, last)


async def place_of(parts: Parts, cast: Cast, key: PlaceKey, fold: Fold) -> Place | None:
    """Describe the current state of a thread; None if it has no messages."""
    thread = await parts.sessions.thread(key)
    if thread is None:
        return None
    first = await parts.transcript.read_place(key, after=0, limit=1)
    sessions = parts.sessions.in_place(key)
    return Place(
        service=label_of(key.service),
        key=key,
        title=thread.title or key.name,
        link=thread.link,
        began=first[0] if first else None,
        members=tuple(_member(session, cast, fold) for session in sessions),
        waiting=tuple(
            [
                wait
                for session in sessions
                if session.state in STOPPABLE
                for wait in await _waiting(parts, session, cast)
            ]
        ),
        decisions=_decisions(fold),
        untagged=parts.dispatcher.untagged(key).agents,
    )


class _AgentOf:
    """Returns the agent of a session; reads the store once per session."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: dict[int, str] = {}

    def __call__(self, session_id: int) -> str:
        if session_id not in self._known:
            session = self._parts.sessions.session(session_id)
            self._known[session_id] = session.key.agent if session is not None else ""
        return self._known[session_id]


def _member(session: Session, cast: Cast, fold: Fold) -> Member:
    usage = fold.usage.get(session.id, {})
    return Member(
        session=session.id,
        agent=cast[session.key.agent],
        state=shown_state(session),
        stoppable=stoppable(session),
        mode=session.mode or "",
        model=session.model or "",
        tokens=tokens(usage.get("used"), usage.get("size")),
        cost=money(usage.get("cost"), usage.get("currency")),
    )


async def _waiting(parts: Parts, session: Session, cast: Cast) -> list[Waiting]:
    """List the messages queued for an agent; a turn that is about to start does not count."""
    if not parts.turns.waiting(session.id):
        return []
    queued = [
        turn for turn in await parts.turns.turns(session.id) if turn.state == TurnState.QUEUED
    ]
    return [
        Waiting(
            session=session.id,
            agent=cast[session.key.agent],
            messages=tuple(
                (message.number, message.speaker.name, message.text[:WAITING_CHARACTERS])
                for message in parts.turns.messages(turn.id)
            ),
            held=turn.held,
        )
        for turn in queued
        if not turn.continued
    ]


def _decisions(fold: Fold) -> tuple[Decided, ...]:
    answered = [each for each in fold.questions.values() if each.state == "answered"]
    return tuple(
        Decided(each.closed, each.title, each.note) for each in answered[-DECISIONS:][::-1]
    )
