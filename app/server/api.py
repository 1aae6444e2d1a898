"""Serves the API under /api/v1: sessions, transcripts, asks, deliveries and posts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Header, Query
from fastapi import Path as PathParameter
from fastapi.responses import StreamingResponse

from app.agents.agent import Agent
from app.agents.checks import describe_change
from app.core.feed import Unfinished
from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.model.agents import State as Availability
from app.model.inbound import Accepted, DeliveryState, WhileBusy
from app.model.posts import PostState
from app.model.types import Session, SessionState
from app.model.updates import AskState
from app.server.agent_shapes import AgentOut
from app.server.event_stream import QUIET, event, stream
from app.server.filters import AgentName, ServiceName, Since, find_service, read_filter
from app.server.login import SignedInRoute, Visitor, is_welcome, visitor
from app.server.problems import RESPONSES
from app.server.shapes import (
    AskOut,
    DeliveryOut,
    EntryOut,
    HandoverOut,
    NewAnswer,
    NewHandover,
    NewMessage,
    NewSession,
    Page,
    PostOut,
    SessionDetail,
    SessionOut,
    SessionTurn,
    SubagentOut,
    UnfinishedOut,
    state_of,
)
from app.server.site import RuntimeOf, SiteOf, settle
from app.server.turn_record import TurnRecord, read_record
from app.services.web import events

QUIET_SECONDS = 15.0
"""How often a quiet event stream sends a keep-alive: below the usual proxy timeouts."""

Limit = Annotated[int, Query(ge=1, le=500)]
Number = Annotated[int, PathParameter(ge=1, le=2**63 - 1)]
Who = Annotated[Visitor, Depends(visitor)]
Row = Annotated[int, Query(ge=0, le=2**63 - 1)]
CURSOR = r"^\d{1,15}(\.\d{1,9})?_\d{1,18}$"

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/agents")
async def list_agents(
    runtime: RuntimeOf, state: Availability | None = None, service: ServiceName = None
) -> Page[AgentOut]:
    """List the agents; `state` is that of their availability."""
    wanted = find_service(runtime, service)
    shown = [agent_out(runtime, each) for each in runtime.agents.values()]
    return Page(
        items=[
            each
            for each in shown
            if state in {None, each.availability.state}
            and (wanted is None or wanted in each.services)
        ]
    )


@router.post("/sessions", status_code=201)
async def begin_session(runtime: RuntimeOf, who: Who, new: NewSession) -> SessionTurn:
    """Send a message to an agent, in a new or an existing thread."""
    agent = runtime.agents.find(new.agent).id
    thread = new.thread or uuid4().hex[:12]
    chosen = await runtime.picker.check(events.place_key(thread), agent, new.repository or "")
    accepted = await _say(runtime, who, agent, thread, new.text, repository=chosen)
    key = events.session_key(thread, agent)
    session = runtime.stores.sessions.find(key)
    if session is None:
        raise Conflict(f"no session started: {new.text!r} is a command and needs a session")
    return _session_turn(runtime, session, accepted)


@router.get("/sessions")
async def list_sessions(
    runtime: RuntimeOf,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: SessionState | None = None,
    since: Since = None,
    before: Annotated[str | None, Query(pattern=CURSOR)] = None,
    limit: Limit = 50,
) -> Page[SessionOut]:
    """List sessions, most recently used first; `next` is the `before` of the next page.

    `since` finds those that were used since then.
    """
    at, _, number = (before or "").partition("_")
    start = (float(at), int(number)) if before else None
    only = read_filter(runtime, agent=agent, service=service, state=state, since=since)
    found = await runtime.stores.sessions.recent(only, before=start, limit=limit)
    more = f"{found[-1].updated_at!r}_{found[-1].id}" if len(found) == limit else None
    return Page(items=[_session_out(runtime, session) for session in found], next=more)


@router.get("/sessions/{session_id}")
async def read_session(runtime: RuntimeOf, session_id: Number) -> SessionDetail:
    """Read a session with its turns."""
    session = _session(runtime, session_id)
    detail = SessionDetail.with_turns(
        _session_out(runtime, session), await runtime.stores.turns.turns(session_id)
    )
    more = {
        "repository": _repository(runtime, session),
        "attributes": dict(session.attributes),
        "unshown": dict(session.unshown),
    }
    return detail.model_copy(update=more)


@router.delete("/sessions/{session_id}", status_code=204)
async def remove_session(runtime: RuntimeOf, session_id: Number) -> None:
    """Remove the agent from its place; the transcript stays readable."""
    await runtime.manager.remove(session_id)


@router.post("/sessions/{session_id}/messages", status_code=202)
async def say(runtime: RuntimeOf, who: Who, session_id: Number, new: NewMessage) -> SessionTurn:
    """Send a message to a session; while a turn runs it goes into it, or waits for the next."""
    thread, session = _thread_of(runtime, session_id), _session(runtime, session_id)
    runtime.agents.require_present(session.key.agent)
    accepted = await _say(
        runtime, who, session.key.agent, thread, new.text, while_busy=new.while_busy
    )
    return _session_turn(runtime, _session(runtime, session_id), accepted)


@router.post("/sessions/{session_id}/handover", status_code=202)
async def hand_over(
    runtime: RuntimeOf, who: Who, session_id: Number, new: NewHandover
) -> HandoverOut:
    """Hand the conversation of a session over to another agent, with words for it or without."""
    thread = _thread_of(runtime, session_id)
    agent = runtime.agents.find(new.agent).id
    accepted = await _say(
        runtime, who, agent, thread, new.text or f"agent {new.agent}", hands_over=agent
    )
    session = runtime.stores.sessions.find(events.session_key(thread, agent))
    shown = None if session is None else _session_turn(runtime, session, accepted)
    return HandoverOut(agent=new.agent, thread=thread, session=shown)


@router.post("/sessions/{session_id}/cancel")
async def cancel(runtime: RuntimeOf, session_id: Number) -> SessionOut:
    """Stop the running turn; queued messages are held."""
    await runtime.manager.stop(session_id)
    return _session_out(runtime, _session(runtime, session_id))


@router.get("/sessions/{session_id}/subagents")
async def list_subagents(
    runtime: RuntimeOf, session_id: Number, *, running: bool = False
) -> Page[SubagentOut]:
    """List the sub-agents of a session, oldest first; with `running`, those that are at work."""
    _session(runtime, session_id)
    known = await runtime.stores.subagents.of_session(session_id, running=running)
    numbers = {each.key: each.id for each in known}
    shown = [asdict(each) | {"parent": numbers.get(each.parent)} for each in known]
    return Page(items=[SubagentOut.model_validate(each) for each in shown])


@router.post("/sessions/{session_id}/subagents/{number}/cancel")
async def cancel_subagent(runtime: RuntimeOf, session_id: Number, number: Number) -> None:
    """Stop one sub-agent; its agent and the others go on."""
    found = await runtime.stores.subagents.subagent(number)
    if found is None or found.session != _session(runtime, session_id).id:
        raise NotFound("sub-agent", number)
    await runtime.manager.stop_subagent(number)


@router.get("/sessions/{session_id}/turns/{turn_id}")
async def read_turn(runtime: RuntimeOf, session_id: Number, turn_id: Number) -> TurnRecord:
    """Read a turn: what caused it, who decided what, and its prompt exactly as it was sent."""
    turn = runtime.stores.turns.turn(turn_id)
    if turn is None or turn.session != _session(runtime, session_id).id:
        raise NotFound("turn", turn_id)
    return await read_record(runtime, turn)


@router.get("/sessions/{session_id}/transcript")
async def read_transcript(
    runtime: RuntimeOf, session_id: Number, after: Row = 0, limit: Limit = 200
) -> Page[EntryOut]:
    """Read the transcript of a session, in order."""
    _session(runtime, session_id)
    rows = await runtime.stores.transcript.read(session_id, after=after, limit=limit)
    more = rows[-1].id if len(rows) == limit else None
    return Page(items=[EntryOut.of(row) for row in rows], next=more)


@router.get("/sessions/{session_id}/events", response_class=StreamingResponse)
async def follow_session(
    runtime: RuntimeOf,
    site: SiteOf,
    who: Who,
    session_id: Number,
    after: Row = 0,
    last_event_id: Annotated[int | None, Header()] = None,
) -> StreamingResponse:
    """Follow a session; rows carry their number, unfinished text carries none."""
    _session(runtime, session_id)
    start = last_event_id if last_event_id is not None else after
    return stream(_follow(runtime, session_id, start, partial(is_welcome, site, who)))


@router.get("/asks")
async def list_asks(
    runtime: RuntimeOf,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: AskState | None = None,
    since: Since = None,
    after: Row = 0,
    limit: Limit = 50,
) -> Page[AskOut]:
    """List asks, oldest first; `next` is the `after` of the next page."""
    only = read_filter(runtime, agent=agent, service=service, state=state, since=since)
    found = await runtime.ledger.list(only, after=after, limit=limit)
    more = found[-1].id if len(found) == limit else None
    return Page(items=[AskOut.of(ask) for ask in found], next=more)


@router.post("/asks/{ask_id}/answer")
async def answer_ask(runtime: RuntimeOf, who: Who, ask_id: Number, new: NewAnswer) -> AskOut:
    """Answer an ask; the first answer counts."""
    return AskOut.of(await runtime.ledger.answer(ask_id, new.answer, who.name))


@router.get("/deliveries")
async def list_deliveries(
    runtime: RuntimeOf,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: DeliveryState | None = None,
    since: Since = None,
    before: Row | None = None,
    limit: Limit = 50,
) -> Page[DeliveryOut]:
    """List deliveries, newest first; `next` is the `before` of the next page."""
    only = read_filter(runtime, agent=agent, service=service, state=state, since=since)
    found = await runtime.stores.deliveries.recent(only, before=before, limit=limit)
    more = found[-1].seq if len(found) == limit else None
    return Page(items=[DeliveryOut.of(line) for line in found], next=more)


@router.get("/posts")
async def list_posts(
    runtime: RuntimeOf,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: PostState | None = None,
    since: Since = None,
    before: Row | None = None,
    limit: Limit = 50,
) -> Page[PostOut]:
    """List posts, newest first; `next` is the `before` of the next page."""
    only = read_filter(runtime, agent=agent, service=service, state=state, since=since)
    found = await runtime.stores.posts.recent(only, before=before, limit=limit)
    more = found[-1].id if len(found) == limit else None
    return Page(items=[PostOut.of(post) for post in found], next=more)


def agent_out(runtime: Runtime, agent: Agent) -> AgentOut:
    """Show an agent."""
    return AgentOut.of(
        agent,
        runtime.availability.of(agent.id),
        default=agent is runtime.agents.default,
        isolation=runtime.admission.describe(agent.id),
        isolation_change=describe_change(runtime.agents.record(agent.id)),
        services=runtime.services_of(agent.id),
    )


def _session(runtime: Runtime, session_id: int) -> Session:
    session = runtime.stores.sessions.session(session_id)
    if session is None:
        raise NotFound("session", session_id)
    return session


def _thread_of(runtime: Runtime, session_id: int) -> str:
    """Return the thread of a session on the page; other services take messages themselves."""
    key = _session(runtime, session_id).key
    if key.service != events.SERVICE:
        raise Conflict(f"this session is on {key.service}; send messages there")
    return key.external


def _session_out(runtime: Runtime, session: Session) -> SessionOut:
    return SessionOut.of(
        session, runtime.agents.name(session.key.agent), state_of(runtime, session)
    )


def _session_turn(runtime: Runtime, session: Session, accepted: Accepted) -> SessionTurn:
    turn = accepted.turns[0].turn if accepted.turns else None
    return SessionTurn(
        **_session_out(runtime, session).model_dump(),
        turn=turn,
        repository=_repository(runtime, session),
    )


def _repository(runtime: Runtime, session: Session) -> str | None:
    return runtime.workspaces.describe(session).written


async def _say(
    runtime: Runtime,
    who: Visitor,
    agent: str,
    thread: str,
    text: str,
    *,
    repository: str = "",
    hands_over: str = "",
    while_busy: WhileBusy = "steer",
) -> Accepted:
    """Send a message through the same intake as messages from platforms."""
    said = events.PageMessage(
        thread=thread,
        text=text,
        speaker_id=who.id,
        speaker_name=who.name,
        mentions=(agent,),
        title=text.splitlines()[0][:80],
        repository=repository,
        hands_over=hands_over,
        while_busy=while_busy,
    )
    return await settle(runtime, events.delivery(said, agent, now=runtime.clock.now()))


async def _follow(
    runtime: Runtime, session_id: int, after: int, is_still_welcome: Callable[[], bool]
) -> AsyncIterator[bytes]:
    async for item in runtime.feed.follow(session_id, after=after, idle=QUIET_SECONDS):
        if not is_still_welcome():
            return
        match item:
            case None:
                yield QUIET
            case Unfinished():
                yield event("unfinished", UnfinishedOut.of(item).model_dump_json().encode())
            case _:
                yield event("entry", EntryOut.of(item).model_dump_json().encode(), number=item.id)
