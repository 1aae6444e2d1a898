"""Reads what a page shows: agents, the list of threads, one thread with its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fastapi import Request

from app.agents.checks import describe_change
from app.agents.identity import COLOURS
from app.core.runtime import Runtime
from app.errors import NotFound
from app.model.asks import WantedGrants
from app.model.conversations import Wanted, path_of, title_of
from app.model.delegation import SERVICE, Branch
from app.model.keys import SERVICE_NAME, PlaceKey
from app.model.text import money
from app.model.types import OPEN_TURN_STATES, Session, SessionState, TurnState
from app.server.installations import is_installable
from app.server.page.view.cards import describe
from app.server.page.view.listing import (
    STOPPABLE,
    ThreadList,
    found_list,
    shown_state,
    stoppable,
    thread_list,
)
from app.server.page.view.place import (
    NOTHING,
    Decided,
    Doing,
    Place,
    Steps,
    ThreadAgent,
    Waiting,
    WorkLine,
    WorkOrigin,
    tokens,
    work_of,
)
from app.server.page.view.roster import AgentView, PageRoster, Trouble
from app.server.page.view.thread import Fold
from app.server.shapes import state_of
from app.services import label_of

ROWS_AT_ONCE = 1_000
"""Rows per read while a page is built: few reads, little memory."""
LATEST = 20
"""Sessions among which the agent is found that a person used last."""
DECISIONS = 6
"""Decisions shown next to a thread: those that people may still remember."""
GRANTS = 200
"""Grants listed next to a thread; each is one answer of a person within a month."""
FOUND = 30
"""Threads that a search shows; one more word narrows it down."""
QUERY_WORDS = 8
"""Words of a query that count."""
GROUPED = "threads-grouped"
"""The cookie with the grouping that a browser prefers."""
Grouping = Literal["", "agent", "repository"]
NEW_THREAD = PlaceKey("web", "")
"""A thread that has no messages yet."""
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


def roster_of(runtime: Runtime) -> PageRoster:
    """List the agents as the page shows them."""
    agents = (
        AgentView(
            id=each.id,
            name=each.name,
            title=each.title,
            description=each.description,
            isolation=runtime.admission.describe(each.id),
            command=each.config.program,
            default=each is runtime.agents.default,
            examples=each.program.examples if each.program else (),
            availability=runtime.availability.of(each.id),
            emoji=each.emoji,
            colour=COLOURS.index(each.config.own_colour) if each.config.own_colour else None,
            visible=each.visible,
            source=each.config.source,
            isolation_change=describe_change(runtime.agents.record(each.id)),
        )
        for each in runtime.agents.values()
    )
    return PageRoster.of(
        agents, label_of, runtime.agents.removed(), runtime.agents.removed_titles()
    )


def troubles_of(runtime: Runtime) -> tuple[Trouble, ...]:
    """List the connection problems of agents, with the link that repairs each."""
    return tuple(
        Trouble(
            words if words.startswith(name) else f"{name}: {words}",
            f"/install/{name.replace(':', '/')}" if is_installable(runtime.adapters, name) else "",
        )
        for name, words in runtime.troubles().items()
        if words
    )


def notices_of(runtime: Runtime, key: PlaceKey | None) -> tuple[str, ...]:
    """Say what people must know: of a thread what concerns it, else everything."""
    agents = (
        ()
        if key is None
        else (
            *listeners(runtime, key),
            *(each.key.agent for each in runtime.stores.sessions.in_place(key)),
        )
    )
    return tuple(runtime.hooks.notices(key, agents))


async def usual_agent(runtime: Runtime) -> str:
    """Return the agent of a new thread: the one used last if it is offered, else the default.

    A default that cannot work makes way for the first that can.
    """
    for session in await runtime.stores.sessions.recent(limit=LATEST):
        if session.place.service == SERVICE:
            continue  # another agent chose it
        agent = runtime.agents.get(session.key.agent)
        if agent is not None and agent.visible:
            return agent.id
        break
    default = runtime.agents.default.id
    offered = [each.id for each in runtime.agents.values() if each.visible]
    able = (each for each in (default, *offered) if runtime.availability.of(each).state == "ready")
    return next(able, default)


def listeners(runtime: Runtime, key: PlaceKey) -> tuple[str, ...]:
    """Return the agents that a message on the page without a mention is for.

    Among several it is the one that waits for an answer, else the one addressed last, unless the
    thread was told otherwise.
    """
    if runtime.dispatcher.untagged(key).agents:
        return ()
    sessions = runtime.stores.sessions.in_place(key)
    asking = tuple(each.key.agent for each in sessions if each.state == SessionState.WAITING)
    return asking if len(asking) == 1 else runtime.dispatcher.untagged(key, "latest").agents


async def threads_of(
    runtime: Runtime,
    roster: PageRoster,
    current: PlaceKey | None,
    limit: int,
    more: str,
    *,
    grouped: Grouping = "",
) -> ThreadList:
    """List the threads."""
    found = await runtime.stores.conversations.list(Wanted(pinned_first=True), limit=limit)
    more = more if len(found) == limit else ""
    return thread_list(found, roster, current=current, more=more, grouped=grouped)


def grouping_of(request: Request) -> Grouping:
    """Return how a browser wants the list of threads to be grouped."""
    match request.cookies.get(GROUPED):
        case "agent":
            return "agent"
        case "repository":
            return "repository"
    return ""


async def find_threads(runtime: Runtime, roster: PageRoster, query: str) -> ThreadList:
    """List the threads that a search finds."""
    words = query.split()[:QUERY_WORDS]
    wanted = Wanted(archived=None)
    found = await runtime.stores.conversations.search(words, wanted, limit=FOUND) if words else ()
    return found_list(found, roster, words)


async def read_thread(
    runtime: Runtime, key: PlaceKey, *, begin: int, until: int | None = None
) -> Reading:
    """Fold the rows of a place, between two row numbers."""

    @cache
    def agent_of(session_id: int) -> str:
        session = runtime.stores.sessions.session(session_id)
        return session.key.agent if session is not None else ""

    def asked_of(turn: int) -> Branch | None:
        branch = runtime.stores.tree.of_turn(turn)
        return None if branch is None or branch.place == key else branch

    fold = Fold(agent_of, whole=begin == 0, asked_of=asked_of)
    last = begin
    while rows := await runtime.stores.transcript.read_tree(key, after=last, limit=ROWS_AT_ONCE):
        shown = [row for row in rows if until is None or row.id <= until]
        fold.add(shown)
        last = shown[-1].id if shown else last
        if len(shown) < len(rows) or len(rows) < ROWS_AT_ONCE:
            break
    return Reading(fold, last)


async def place_of(runtime: Runtime, roster: PageRoster, key: PlaceKey, fold: Fold) -> Place | None:
    """Describe the current state of a thread; None if it has no messages."""
    thread = await runtime.stores.conversations.thread(key)
    if thread is None:
        return None
    first = await runtime.stores.transcript.read_place(key, after=0, limit=1)
    sessions = runtime.stores.sessions.in_place(key)
    return Place(
        service=label_of(key.service),
        key=key,
        title=title_of(thread),
        link=thread.link,
        began=first[0] if first else None,
        members=tuple(_member(runtime, session, roster, fold) for session in sessions),
        gone=() if sessions else tuple(roster[each.key.agent] for each in thread.sessions),
        waiting=tuple(
            [
                wait
                for session in sessions
                if session.state in STOPPABLE
                for wait in await _waiting(runtime, session, roster)
            ]
        ),
        decisions=decisions_of(fold),
        grants=tuple(
            await runtime.ledger.grants(WantedGrants(place=key, state="active"), limit=GRANTS)
        ),
        untagged=runtime.dispatcher.untagged(key).agents or listeners(runtime, key),
        latest=_latest_agent(runtime, roster, key, sessions),
        pinned=thread.pinned,
        archived=thread.archived,
        delegated=fold.delegated,
        origin=await _origin(runtime, key, sessions),
        work=_work(runtime, roster, sessions),
    )


async def _origin(
    runtime: Runtime, key: PlaceKey, sessions: Sequence[Session]
) -> WorkOrigin | None:
    """Tell who asked for the work in a place of agents, and where people talk about it."""
    branch = (
        runtime.stores.tree.of_session(sessions[0].id)
        if key.service == SERVICE and sessions
        else None
    )
    if branch is None:
        return None
    root = await runtime.stores.conversations.thread(branch.root_place)
    caller = runtime.stores.sessions.session(branch.caller_session)
    return WorkOrigin(
        branch.caller_agent,
        branch.person,
        path_of(caller.place if caller is not None else branch.root_place),
        path_of(branch.root_place),
        title_of(root) if root is not None else "",
        f"t{branch.caller_turn}" if branch.caller_turn is not None else "",
    )


def _latest_agent(
    runtime: Runtime, roster: PageRoster, key: PlaceKey, sessions: Sequence[Session]
) -> str:
    """Return the agent of a thread that was used last, if it is offered; for a new thread."""
    answering = runtime.dispatcher.untagged(key, "latest").agents
    used = sorted(sessions, key=lambda each: each.updated_at, reverse=True)
    names = (*answering, *(each.key.agent for each in used))
    offered = {agent.id for agent in roster.offered}
    return next((name for name in names if name in offered), "")


def _member(runtime: Runtime, session: Session, roster: PageRoster, fold: Fold) -> ThreadAgent:
    usage = fold.usage.get(session.id, {})
    turn = fold.latest(session.id)
    choices = runtime.manager.choices(session)
    return ThreadAgent(
        session=session.id,
        agent=roster[session.key.agent],
        state=shown_state(session, state_of(runtime, session)),
        stoppable=stoppable(session),
        failed=session.failed and not stoppable(session),
        updated=session.updated_at,
        mode=session.mode or choices.mode,
        model=session.model or choices.model,
        modes=choices.modes,
        models=choices.models,
        tokens=tokens(usage.get("used"), usage.get("size")),
        cost=money(
            usage.get("cost"), usage.get("currency"), estimated=bool(usage.get("estimated"))
        ),
        doing=_doing(runtime, session, fold) if session.state in STOPPABLE else NOTHING,
        plan=Steps(turn.plan.steps) if turn is not None and turn.plan is not None else None,
        work=runtime.live.work(session.id),
        unshown=session.unshown,
    )


def _work(
    runtime: Runtime, roster: PageRoster, sessions: Sequence[Session]
) -> tuple[WorkLine, ...]:
    """Describe where the agents of a thread work, from what the store knows."""
    found = (
        work_of(roster[each.key.agent].title, each.id, runtime.workspaces.describe(each))
        for each in sessions
    )
    return tuple({each.key: each for each in found}.values())


def _doing(runtime: Runtime, session: Session, fold: Fold) -> Doing:
    """Describe what an agent does; a turn without a row has only the time of its message."""
    turn = fold.latest(session.id)
    stored = runtime.stores.turns.turn(turn.number) if turn is not None else None
    if turn is None or stored is None or stored.state not in OPEN_TURN_STATES:
        return Doing(fold.told(session.key.agent) or session.updated_at)
    return Doing(turn.head.began, turn.id, *describe(fold.running(turn)))


async def _waiting(runtime: Runtime, session: Session, roster: PageRoster) -> list[Waiting]:
    """List the messages queued for an agent; a turn that is about to start does not count."""
    if not runtime.stores.turns.waiting(session.id):
        return []
    queued = [
        turn
        for turn in await runtime.stores.turns.turns(session.id)
        if turn.state == TurnState.QUEUED
    ]
    return [
        Waiting(
            session=session.id,
            agent=roster[session.key.agent],
            messages=tuple(
                (message.number, message.speaker.name, message.text[:WAITING_CHARACTERS])
                for message in runtime.stores.turns.messages(turn.id)
            ),
            held=turn.held,
        )
        for turn in queued
        if not turn.continued
    ]


def decisions_of(fold: Fold) -> tuple[Decided, ...]:
    """List what people decided, and what a rule refused; the latest first."""
    answered = [each for each in fold.questions.values() if each.state == "answered"]
    made = [Decided(each.closed, each.title, each.note) for each in answered]
    made += [Decided(each.ended or each.began, each.title, each.decided) for each in fold.refusals]
    return tuple(sorted(made, key=lambda each: each.at)[-DECISIONS:][::-1])
