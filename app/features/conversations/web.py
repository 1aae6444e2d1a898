"""Serves /api/v1/conversations, and what of sessions concerns their conversation: title, fork."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from app.core.runtime import Runtime
from app.errors import NotFound
from app.features.conversations.export import export
from app.features.conversations.model import (
    ChangedConversation,
    ContentsOut,
    ConversationOut,
    ExportOut,
    NewFork,
)
from app.features.conversations.service import Conversations
from app.features.part import find_part
from app.model.conversations import Wanted
from app.model.types import SessionState, Thread
from app.server.api import Limit, Number, read_session
from app.server.filters import (
    AgentName,
    ServiceName,
    Since,
    find_agent_id,
    find_service,
)
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page, SessionChanges, SessionDetail, SessionOut
from app.server.site import RuntimeOf
from app.services.web import events

QUERY_WORDS = 8
"""Words of a query that count."""
LAST = 2**63 - 1
"""After every row there is: where the list goes on after a page of pinned conversations."""

Who = Annotated[Visitor, Depends(visitor)]
Talks = Annotated[Conversations, Depends(find_part(Conversations))]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/conversations")
async def list_conversations(
    runtime: RuntimeOf,
    *,
    q: Annotated[str, Query(max_length=200)] = "",
    agent: AgentName = None,
    service: ServiceName = None,
    state: SessionState | None = None,
    since: Since = None,
    repository: str | None = None,
    archived: bool = False,
    before: Annotated[int | None, Query(ge=0, le=LAST)] = None,
    limit: Limit = 50,
) -> Page[ConversationOut]:
    """List conversations: pinned ones in the order of pinning, then the most recently active.

    `next` is the `before` of the next page.

    `q` finds words in titles and texts, in archived ones too; `state` finds those with a session in
    that state, `since` those in which something happened since then, `archived` only archived ones.
    """
    wanted = Wanted(
        agent=find_agent_id(runtime, agent),
        repository=repository,
        archived=None if q and not archived else archived,
        service=find_service(runtime, service),
        state=state,
        since=since,
        before=before,
        pinned_first=True,
    )
    words = q.split()[:QUERY_WORDS]
    found = await (
        runtime.stores.conversations.search(words, wanted, limit=limit)
        if words
        else runtime.stores.conversations.list(wanted, limit=limit)
    )
    more = None
    if len(found) == limit:
        only_pinned = before is None and not words and found[-1].pinned
        more = LAST if only_pinned else found[-1].last.id
    return Page(items=[_shown(runtime, each) for each in found], next=more)


@router.get("/conversations/{number}")
async def read_conversation(runtime: RuntimeOf, talks: Talks, number: Number) -> ConversationOut:
    """Read a conversation with its sessions."""
    return _shown(runtime, await talks.find(number))


@router.patch("/conversations/{number}")
async def change_conversation(
    runtime: RuntimeOf, talks: Talks, who: Who, number: Number, new: ChangedConversation
) -> ConversationOut:
    """Rename, pin or archive a conversation."""
    place = (await talks.find(number)).place
    if new.title is not None:
        await talks.rename(place, new.title, who.name)
    if new.pinned is not None:
        await talks.pin(place, pinned=new.pinned)
    if new.archived is not None:
        await talks.archive(place, archived=new.archived)
    return _shown(runtime, await talks.read(place))


@router.post("/conversations/{number}/clear")
async def clear_conversation(
    runtime: RuntimeOf, talks: Talks, who: Who, number: Number
) -> ConversationOut:
    """Delete what was said, and let the agents start over; the files they work on stay."""
    place = (await talks.find(number)).place
    await talks.clear(place, who.name)
    return _shown(runtime, await talks.read(place))


@router.post("/conversations/{number}/fork", status_code=201)
async def fork_conversation(
    runtime: RuntimeOf, talks: Talks, number: Number, new: NewFork
) -> ConversationOut:
    """Copy a conversation up to a row into a new thread of the page."""
    place = (await talks.find(number)).place
    made = await talks.fork(place, events.SERVICE, after=new.after)
    return _shown(runtime, await talks.read(made))


@router.patch("/sessions/{session_id}")
async def change_session(
    runtime: RuntimeOf, talks: Talks, who: Who, session_id: Number, changes: SessionChanges
) -> SessionDetail:
    """Rename the conversation of a session, or change its attributes; null removes one.

    Agents do not change that title.
    """
    session = runtime.stores.sessions.session(session_id)
    if session is None:
        raise NotFound("session", session_id)
    if changes.attributes is not None:
        await runtime.stores.sessions.annotate(session_id, changes.attributes)
    if changes.title is not None:
        await talks.rename(session.place, changes.title, who.name)
    return await read_session(runtime, session_id)


@router.post("/sessions/{number}/fork", status_code=201)
async def fork_session(
    runtime: RuntimeOf, talks: Talks, number: Number, new: NewFork
) -> SessionOut:
    """Fork the conversation of a session; returns the new session of the same agent."""
    session = runtime.stores.sessions.session(number)
    if session is None:
        raise NotFound("session", number)
    made = await talks.fork(session.place, events.SERVICE, after=new.after)
    agent = session.key.agent
    copy = runtime.stores.sessions.find(events.session_key(made.name, agent))
    assert copy is not None, "a fork has the sessions of its original"
    return SessionOut.of(copy, runtime.agents.name(agent))


@router.get("/conversations/{number}/contents")
async def read_contents(talks: Talks, number: Number) -> ContentsOut:
    """Read what would be deleted with a conversation."""
    place = (await talks.find(number)).place
    return ContentsOut.of(await talks.contents(place))


@router.delete("/conversations/{number}", status_code=204)
async def delete_conversation(talks: Talks, number: Number, *, discard: bool = False) -> None:
    """Delete a conversation with everything that it left in the store and on disk.

    Work that is nowhere else is deleted only with `discard`.
    """
    await talks.delete((await talks.find(number)).place, discard=discard)


@router.get(
    "/conversations/{number}/export",
    response_model=ExportOut,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def export_conversation(
    runtime: RuntimeOf,
    talks: Talks,
    number: Number,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "json",
) -> Response:
    """Export a whole conversation, as JSON or as Markdown."""
    return await export(runtime, await talks.find(number), form)


def _shown(runtime: Runtime, thread: Thread) -> ConversationOut:
    return ConversationOut.of(thread, runtime)
