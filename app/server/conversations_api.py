"""Serves /api/v1/conversations: list, search, rename, pin, archive, clear, fork, delete, export."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi import Path as PathParameter
from fastapi.responses import Response

from app.errors import NotFound
from app.model.conversations import Wanted
from app.model.titles import title_of
from app.model.types import Entry, SessionState, Thread
from app.model.visible import reveal_line
from app.model.wording import ASKED_AGENT, DELEGATED
from app.server.conversation_shapes import (
    ChangedConversation,
    ContentsOut,
    ConversationOut,
    ExportedEntry,
    ExportOut,
    NewFork,
)
from app.server.exporting import Exported, file_name, write_markdown
from app.server.filters import (
    AgentName,
    ServiceName,
    Since,
    find_agent_id,
    find_service,
)
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.parts import Parts, PartsOf
from app.server.problems import RESPONSES
from app.server.shapes import EntryOut, Page, SessionOut
from app.services import label_of
from app.services.web import events

ROWS = 1_000
"""Rows per read of an export."""
QUERY_WORDS = 8
"""Words of a query that count."""
LAST = 2**63 - 1
"""After every row there is: where the list goes on after a page of pinned conversations."""

Limit = Annotated[int, Query(ge=1, le=500)]
Number = Annotated[int, PathParameter(ge=1, le=2**63 - 1)]
Who = Annotated[Visitor, Depends(visitor)]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/conversations")
async def list_conversations(
    parts: PartsOf,
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
        agent=find_agent_id(parts, agent),
        repository=repository,
        archived=None if q and not archived else archived,
        service=find_service(parts, service),
        state=state,
        since=since,
        before=before,
        pinned_first=True,
    )
    words = q.split()[:QUERY_WORDS]
    found = await (
        parts.threads.search(words, wanted, limit=limit)
        if words
        else parts.threads.list(wanted, limit=limit)
    )
    more = None
    if len(found) == limit:
        only_pinned = before is None and not words and found[-1].pinned
        more = LAST if only_pinned else found[-1].last.id
    items = [ConversationOut.of(each, parts.name_of, parts.state_of) for each in found]
    return Page(items=items, next=more)


@router.get("/conversations/{number}")
async def read_conversation(parts: PartsOf, number: Number) -> ConversationOut:
    """Read a conversation with its sessions."""
    return ConversationOut.of(await parts.talks.find(number), parts.name_of, parts.state_of)


@router.patch("/conversations/{number}")
async def change_conversation(
    parts: PartsOf, who: Who, number: Number, new: ChangedConversation
) -> ConversationOut:
    """Rename, pin or archive a conversation."""
    place = (await parts.talks.find(number)).place
    if new.title is not None:
        await parts.talks.rename(place, new.title, who.name)
    if new.pinned is not None:
        await parts.talks.pin(place, pinned=new.pinned)
    if new.archived is not None:
        await parts.talks.archive(place, archived=new.archived)
    return ConversationOut.of(await parts.talks.read(place), parts.name_of, parts.state_of)


@router.post("/conversations/{number}/clear")
async def clear_conversation(parts: PartsOf, who: Who, number: Number) -> ConversationOut:
    """Delete what was said, and let the agents start over; the files they work on stay."""
    place = (await parts.talks.find(number)).place
    await parts.talks.clear(place, who.name)
    return ConversationOut.of(await parts.talks.read(place), parts.name_of, parts.state_of)


@router.post("/conversations/{number}/fork", status_code=201)
async def fork_conversation(parts: PartsOf, number: Number, new: NewFork) -> ConversationOut:
    """Copy a conversation up to a row into a new thread of the page."""
    place = (await parts.talks.find(number)).place
    made = await parts.talks.fork(place, events.SERVICE, after=new.after)
    return ConversationOut.of(await parts.talks.read(made), parts.name_of, parts.state_of)


@router.post("/sessions/{number}/fork", status_code=201)
async def fork_session(parts: PartsOf, number: Number, new: NewFork) -> SessionOut:
    """Fork the conversation of a session; returns the new session of the same agent."""
    session = parts.sessions.session(number)
    if session is None:
        raise NotFound("session", number)
    made = await parts.talks.fork(session.place, events.SERVICE, after=new.after)
    agent = session.key.agent
    copy = parts.sessions.find(events.session_key(made.name, agent))
    assert copy is not None, "a fork has the sessions of its original"
    return SessionOut.of(copy, parts.name_of(agent))


@router.get("/conversations/{number}/contents")
async def read_contents(parts: PartsOf, number: Number) -> ContentsOut:
    """Read what would be deleted with a conversation."""
    place = (await parts.talks.find(number)).place
    return ContentsOut.of(await parts.talks.contents(place))


@router.delete("/conversations/{number}", status_code=204)
async def delete_conversation(parts: PartsOf, number: Number, *, discard: bool = False) -> None:
    """Delete a conversation with everything that it left in the store and on disk.

    Work that is nowhere else is deleted only with `discard`.
    """
    await parts.talks.delete((await parts.talks.find(number)).place, discard=discard)


@router.get(
    "/conversations/{number}/export",
    response_model=ExportOut,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def export_conversation(
    parts: PartsOf,
    number: Number,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "json",
) -> Response:
    """Export a whole conversation, as JSON or as Markdown."""
    return await export(parts, await parts.talks.find(number), form)


async def export(parts: Parts, thread: Thread, form: Literal["json", "markdown"]) -> Response:
    """Answer with a whole conversation, as a file."""
    entries = await _read_all(parts, thread)
    if form == "json":
        body, kind, ending = write_json(parts, thread, entries), "application/json", "json"
    else:
        body, kind, ending = _markdown(parts, thread, entries), "text/markdown", "md"
    name = file_name(title_of(thread), ending)
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(body, media_type=f"{kind}; charset=utf-8", headers=headers)


def write_json(parts: Parts, thread: Thread, entries: list[Entry]) -> str:
    """Write a conversation as JSON."""
    rows = [
        ExportedEntry(**EntryOut.of(each).model_dump(), agent=_agent_of(parts, each.session))
        for each in entries
    ]
    return ExportOut(
        conversation=ConversationOut.of(thread, parts.name_of, parts.state_of), transcript=rows
    ).model_dump_json(indent=2)


def _markdown(parts: Parts, thread: Thread, entries: list[Entry]) -> str:
    agents = dict.fromkeys(_title_of(parts, each.key.agent) for each in thread.sessions)
    about = Exported(
        title_of(thread),
        (
            ("Where", label_of(thread.place.service)),
            ("Link", thread.link),
            ("Agents", ", ".join(agents)),
            ("Repository", thread.repository),
        ),
    )
    return write_markdown(about, entries, lambda session: _name_of(parts, session))


def _agent_of(parts: Parts, session_id: int | None) -> str | None:
    session = None if session_id is None else parts.sessions.session(session_id)
    return None if session is None else parts.name_of(session.key.agent)


def _name_of(parts: Parts, session_id: int) -> str:
    session = parts.sessions.session(session_id)
    return "" if session is None else _title_of(parts, session.key.agent)


def _title_of(parts: Parts, agent: str) -> str:
    card = parts.agents.get(agent)
    return parts.name_of(agent) if card is None else card.display_name


async def _read_all(parts: Parts, thread: Thread) -> list[Entry]:
    """Read a conversation; what agents did for others is one line each."""
    found: list[Entry] = []
    last = 0
    while rows := await parts.transcript.read_tree(thread.place, after=last, limit=ROWS):
        found += filter(None, (_own_row(parts, thread, row) for row in rows))
        last = rows[-1].id
    return found


def _own_row(parts: Parts, thread: Thread, row: Entry) -> Entry | None:
    """Return a row as an export of its conversation has it; None if it has it not."""
    session = None if row.session is None else parts.sessions.session(row.session)
    if session is None or session.place == thread.place:
        return row
    branch = parts.tree.of_turn(row.turn or 0)
    if row.kind != "message" or branch is None:
        return None
    asked = ASKED_AGENT.format(agent=_title_of(parts, branch.agent))
    words = f"{asked}: {reveal_line(branch.task)} · {DELEGATED[branch.state]}"
    data = {"delegation": branch.id, "session": branch.session}
    return replace(
        row,
        kind="notice",
        text=words,
        speaker="",
        data=data,
        session=branch.caller_session,
        turn=branch.caller_turn,
    )
