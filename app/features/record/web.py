"""Serves the record: under /api/v1/record, as an export, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel

from app.core.runtime import Runtime
from app.features.part import find_part
from app.features.record import wording
from app.features.record.service import Record
from app.features.record.store import RecordFilter
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.model.record import TEXTS, RecordKind, RecordRow
from app.server.api import Limit, Row
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.agents import list_agents, to_html
from app.server.page.view import render
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

PATH: Final = "/record"
TEMPLATE = Path(__file__).with_name("record.html")
SHOWN: Final = 100
"""Rows on one page."""

RecordOf = Annotated[Record, Depends(find_part(Record))]
Words = Annotated[str, Query(max_length=500)]
Commit = Annotated[
    str, Query(pattern=r"^([0-9a-fA-F]{7,64})?$", description="A commit, at least 7 digits of it.")
]

router = APIRouter(
    prefix="/api/v1/record",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


class RecordRowOut(BaseModel):
    """One row of the record; a text that was erased is null."""

    number: int
    at: float
    kind: RecordKind
    outcome: str
    session: int | None
    turn: int | None
    agent: str | None
    place: str | None
    repository: str | None
    asked_by: str | None
    """The people whose words the work began with."""
    asked_id: str | None
    """Their accounts, as `slack:U1`."""
    decided_by: str | None
    """Who allowed or refused it."""
    decided_id: str | None
    rule: str | None
    """The rule or the grant that decided, if no one was asked."""
    what: str | None
    ref: str | None
    """The commit, the pull request, the post or the ask."""
    erases: dict[str, list[int]]
    """The rows whose texts were erased, by the name of the text."""
    hash: str

    @classmethod
    def of(cls, runtime: Runtime, row: RecordRow) -> RecordRowOut:
        """Show a row, under the name that its agent has."""
        texts = {name: None if name in row.digests else row.texts.get(name, "") for name in TEXTS}
        texts["agent"] = texts["agent"] and runtime.agents.name(texts["agent"])
        known = ("number", "at", "kind", "outcome", "session", "turn", "erases", "hash")
        return cls.model_validate({name: getattr(row, name) for name in known} | texts)


@router.get("")
async def list_record(
    runtime: RuntimeOf,
    record: RecordOf,
    *,
    commit: Commit = "",
    pull: Words = "",
    turn: Row | None = None,
    session: Row | None = None,
    person: Words = "",
    agent: Words = "",
    repository: Words = "",
    kind: RecordKind | None = None,
    before: Row | None = None,
    limit: Limit = 50,
) -> Page[RecordRowOut]:
    """List the record, newest first; `next` is the `before` of the next page.

    `commit` and `pull` list all rows of the turns that pushed a commit or worked on a pull request.
    """
    wanted = RecordFilter(
        commit=commit,
        pull=pull,
        turn=turn,
        session=session,
        person=person,
        agents=_agents(runtime, agent),
        repository=repository,
        kind=kind or "",
    )
    found = await record.find(wanted, before=before, limit=limit)
    more = found[-1].number if len(found) == limit else None
    return Page(items=[RecordRowOut.of(runtime, each) for each in found], next=more)


@router.get("/export", response_class=StreamingResponse)
async def export(record: RecordOf) -> StreamingResponse:
    """Export the whole record as JSON lines, for `agent-bridge audit verify`."""
    return StreamingResponse(
        record.export(),
        media_type="application/x-ndjson",
        headers={"Content-Disposition": 'attachment; filename="agent-bridge-record.jsonl"'},
    )


pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)


@pages.get(PATH)
async def show(
    runtime: RuntimeOf,
    record: RecordOf,
    who: Annotated[Visitor, Depends(visitor)],
    *,
    commit: Words = "",
    pull: Words = "",
    turn: Words = "",
    person: Words = "",
    agent: Words = "",
    repository: Words = "",
    kind: Words = "",
    before: Words = "",
) -> HTMLResponse:
    """Show the record, newest first, or what belongs to a commit, a pull request or a turn."""
    given = {
        "commit": commit.strip(),
        "pull": pull.strip(),
        "turn": turn.strip(),
        "person": person.strip(),
        "agent": agent,
        "repository": repository.strip(),
        "kind": kind,
    }
    wanted = RecordFilter(
        commit=given["commit"],
        pull=given["pull"],
        turn=_number(turn),
        person=given["person"],
        agents=_agents(runtime, agent),
        repository=given["repository"],
        kind=kind,
    )
    rows = await record.find(wanted, before=_number(before), limit=SHOWN)
    used = {name: value for name, value in given.items() if value}
    older = urlencode({**used, "before": rows[-1].number}) if len(rows) == SHOWN else ""
    listed = await list_agents(runtime, who)
    number, head = await record.head()
    return to_html(
        render.with_agents(
            TEMPLATE,
            listed,
            lines=[RecordLine(runtime, row) for row in rows],
            given=given,
            kinds=wording.KINDS,
            agents=[(each.name, each.title) for each in runtime.agents.values()],
            rows=number,
            head=head,
            older=f"{PATH}?{older}" if older else "",
            on=PATH,
        )
    )


def _agents(runtime: Runtime, name: str) -> tuple[str, ...]:
    """Return the ids of all agents that have or had a name; a name that none has is its own."""
    ids = [each.id for each in runtime.agents.records if each.name == name]
    return tuple(ids) or ((name,) if name else ())


def _number(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) < len(str(2**62)) else None


class RecordLine:
    """One row as the page shows it."""

    def __init__(self, runtime: Runtime, row: RecordRow) -> None:
        self.row = row
        self.kind = wording.KINDS.get(row.kind, row.kind)
        self.words = wording.describe(row)
        self.decided = wording.decision(row)
        self.asked = wording.read_text(row, "asked_by")
        agent = row.texts.get("agent", "")
        self.agent = runtime.agents.name(agent) if agent else ""
        service, _, name = row.texts.get("place", "").partition(":")
        self.path = path_of(PlaceKey(service, name)) if name else ""
        self.place = row.texts.get("place", "")
        self.ref = row.texts.get("ref", "")

    def text(self, name: str) -> str:
        """Return a text of it, or that it was erased."""
        return wording.read_text(self.row, name)
