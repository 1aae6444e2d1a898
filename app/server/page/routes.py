"""Serves the page, its event stream, and what the page leaves out at first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from app.agents.catalog import find_missing
from app.core.runtime import Runtime
from app.errors import NotFound
from app.model.conversations import Wanted, path_of
from app.model.keys import PlaceKey
from app.server.event_stream import stream
from app.server.login import Visitor, is_welcome, visitor
from app.server.page import queries
from app.server.page.actions import words_of
from app.server.page.assets import addresses
from app.server.page.stream import Stream
from app.server.page.view import done, render
from app.server.page.view.blocks import CallBlock
from app.server.page.view.listing import archived_list
from app.server.page.view.place import PageView
from app.server.page.view.render import Renderer
from app.server.page.view.roster import PageRoster
from app.server.page.view.steps import MORE_STEPS, STEPS
from app.server.site import RuntimeOf, Site, SiteOf

ARTICLES: Final = 60
"""Messages and turns that a page shows at first: more than people scroll through."""
YEAR_SECONDS: Final = 365 * 24 * 3600
THREADS: Final = 100
"""Threads in the list at first."""
EXAMPLES: Final = (
    "Hello! What can you do?",
    "What is in your folder?",
    "Write a small script that prints the date.",
)
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # With `no-referrer` a browser hides its origin even from us, and a plain form is refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

router = APIRouter(include_in_schema=False)
Who = Annotated[Visitor, Depends(visitor)]
Threads = Annotated[int, Query(ge=1, le=5_000)]
Words = Annotated[str, Query(max_length=200)]
Articles = Annotated[int, Query(ge=1, le=100_000)]
StepsShown = Annotated[int, Query(ge=1, le=100_000)]


@router.get("/")
async def begin(
    request: Request,
    runtime: RuntimeOf,
    who: Who,
    *,
    to: str = "",
    q: Words = "",
    archived: bool = False,
    threads: Threads = THREADS,
) -> HTMLResponse:
    """Show the list of threads, or those that a search finds, and an empty message box."""
    roster = queries.roster_of(runtime)
    picked = to if to in roster.agents else await queries.usual_agent(runtime)
    found = await queries.find_threads(runtime, roster, q) if q else None
    if archived and not q:
        away = await runtime.stores.conversations.list(Wanted(archived=True), limit=threads)
        found = archived_list(away, roster)
    shown = replace(
        await _page(request, runtime, who, roster, threads=threads),
        query=q,
        found=found,
        archived=archived,
        events=f"/events?threads={threads}&to={picked}",
        missing=tuple((each.title, each.install) for each in find_missing(runtime.configuration)),
        troubles=queries.troubles_of(runtime),
        examples=roster[picked].examples or EXAMPLES,
        picked=picked,
        repository=runtime.picker.default(queries.NEW_THREAD),
    )
    return HTMLResponse(render.page(shown), headers=HEADERS)


@router.get("/threads")
async def search(runtime: RuntimeOf, _who: Who, q: Words = "") -> HTMLResponse:
    """List the threads that a search finds, without a page around them."""
    roster = queries.roster_of(runtime)
    listed = await queries.find_threads(runtime, roster, q)
    return HTMLResponse(render.threads_panel(listed, roster), headers=HEADERS)


@router.get("/latest/{agent}")
async def open_latest(runtime: RuntimeOf, _who: Who, agent: str) -> Response:
    """Go to the most recent conversation with an agent, else begin one."""
    agent_id = runtime.agents.find(agent).id
    found = await runtime.stores.conversations.list(Wanted(agent=agent_id), limit=1)
    return RedirectResponse(path_of(found[0].place) if found else f"/?to={agent_id}", 303)


@router.get("/grouped")
async def group(
    _who: Who, by: queries.Grouping = "", back: Annotated[str, Query(max_length=500)] = "/"
) -> Response:
    """Group the list of threads from now on, in this browser."""
    local = back.startswith("/") and not back.startswith(("//", "/\\"))
    answer = RedirectResponse(back if local else "/", 303)
    answer.set_cookie(
        queries.GROUPED, by, max_age=YEAR_SECONDS, httponly=True, samesite="lax", path="/"
    )
    return answer


@router.get("/t/{service}/{name:path}")
async def read_thread(
    request: Request,
    runtime: RuntimeOf,
    who: Who,
    service: str,
    name: str,
    *,
    articles: Articles = ARTICLES,
    steps: StepsShown = STEPS,
    threads: Threads = THREADS,
) -> HTMLResponse:
    """Show a thread."""
    roster = queries.roster_of(runtime)
    try:
        key = queries.place_key(service, name)
        first = await runtime.stores.transcript.window(key, articles=articles)
        reading = await queries.read_thread(runtime, key, begin=first)
        place = await queries.place_of(runtime, roster, key, reading.fold)
    except NotFound:
        place = None
    if place is None:
        shown = await _page(request, runtime, who, roster, threads=threads)
        lost = render.page(shown, lost="Thread not found.")
        return HTMLResponse(lost, status_code=404, headers=HEADERS)
    if runtime.progress is not None:
        for member in place.members:
            runtime.progress.look_if_old(member.session)
    renderer = Renderer(roster, place.path, begin=first, steps=steps)
    blocks = reading.fold.blocks
    is_cut = bool(first and blocks)
    here = f"{place.path}?articles={articles}&steps={steps}"
    shown = replace(
        await _page(request, runtime, who, roster, threads=threads, key=key, here=here),
        place=place,
        log=await asyncio.to_thread(lambda: "\n".join(map(renderer.block, blocks))),
        events=f"/events{place.path}?begin={first}&steps={steps}&threads={threads}",
        after=reading.last,
        # A longer page, at the point where this one begins.
        earlier=f"{place.path}?articles={articles * 4}#{blocks[0].id}" if is_cut else "",
    )
    return HTMLResponse(render.page(shown), headers=HEADERS)


@router.get("/events")
async def follow_list(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    who: Who,
    threads: Threads = THREADS,
    to: str = "",
) -> StreamingResponse:
    """Follow the list of threads, and which agents can work."""
    more = f"/?threads={threads * 5}"
    grouped = queries.grouping_of(request)
    watched = Stream(runtime, None, 0, threads, more, _welcome(site, who), to, grouped=grouped)
    return stream(watched.events(0), HEADERS)


@router.get("/events/t/{service}/{name:path}")
async def follow_thread(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    who: Who,
    service: str,
    name: str,
    *,
    begin: int = 0,
    after: int = 0,
    steps: StepsShown = STEPS,
    threads: Threads = THREADS,
    last_event_id: Annotated[int | None, Header()] = None,
) -> StreamingResponse:
    """Follow a thread after a row number, for a page that shows it from the row `begin`."""
    key = queries.place_key(service, name)
    more = f"{path_of(key)}?threads={threads * 5}"
    welcome = _welcome(site, who)
    grouped = queries.grouping_of(request)
    watched = Stream(runtime, key, begin, threads, more, welcome, steps=steps, grouped=grouped)
    return stream(watched.events(max(after, last_event_id or 0)), HEADERS)


@router.get("/steps/t/{service}/{name:path}")
async def read_steps(
    runtime: RuntimeOf, _who: Who, service: str, name: str, *, home: str, until: str, begin: int = 0
) -> HTMLResponse:
    """Show the earlier steps of a turn, on a page that begins after the row `begin`."""
    key = queries.place_key(service, name)
    reading = await queries.read_thread(runtime, key, begin=begin)
    blocks = reading.fold.within(home) or []
    end = next((number for number, each in enumerate(blocks) if each.id == until), None)
    if end is None:
        raise NotFound("step", until)
    renderer = Renderer(queries.roster_of(runtime), path_of(key), begin=begin, steps=MORE_STEPS)
    made = await asyncio.to_thread(renderer.listed, blocks[:end], home)
    return HTMLResponse(made, headers=HEADERS)


@router.get("/whole/t/{service}/{name:path}")
async def read_whole(
    runtime: RuntimeOf, _who: Who, service: str, name: str, row: int
) -> HTMLResponse:
    """Show the full input and output of a tool call."""
    key = queries.place_key(service, name)
    found = await runtime.stores.transcript.read_tree(key, after=row - 1, limit=1)
    if not found or found[0].id != row or found[0].kind != "tool":
        raise NotFound("tool call", row)
    call = CallBlock("", row, found[0].data, "", "")
    renderer = Renderer(queries.roster_of(runtime), path_of(key))
    made = await asyncio.to_thread(renderer.call_whole, call)
    return HTMLResponse(made, headers=HEADERS)


@router.get("/log/t/{service}/{name:path}")
async def read_log(
    runtime: RuntimeOf, _who: Who, service: str, name: str, row: int
) -> HTMLResponse:
    """Show the log that was kept of a failed turn."""
    key = queries.place_key(service, name)
    found = await runtime.stores.transcript.read_tree(key, after=row - 1, limit=1)
    log = found[0].data.get("failure", {}).get("log") if found and found[0].id == row else None
    if log is None:
        raise NotFound("log", row)
    renderer = Renderer(queries.roster_of(runtime), path_of(key))
    return HTMLResponse(renderer.log_tail(log), headers=HEADERS)


@router.get("/words/t/web/{thread}")
async def read_words(runtime: RuntimeOf, _who: Who, thread: str, turn: int) -> JSONResponse:
    """Return what a turn was asked, for the message box."""
    found = await words_of(runtime, queries.place_key("web", thread), message=None, turn=turn)
    if found is None:
        raise NotFound("message of turn", turn)
    files = [
        {"name": file.name, "type": file.media_type, "source": render.source_of(file.model_dump())}
        for file in found.files
    ]
    return JSONResponse({"text": found.text, "files": files}, headers=HEADERS)


async def _page(
    request: Request,
    runtime: Runtime,
    who: Visitor,
    roster: PageRoster,
    *,
    threads: int,
    key: PlaceKey | None = None,
    here: str = "",
) -> PageView:
    """Make what every page shows; `here` is the address of a thread, with its query."""
    grouped = queries.grouping_of(request)
    more = f"{here}&threads={threads * 5}" if here else f"/?threads={threads * 5}"
    return PageView(
        roster=roster,
        threads=await queries.threads_of(runtime, roster, key, threads, more, grouped=grouped),
        grouped=grouped,
        csrf=who.csrf,
        told=done.sentence(who.done),
        visitor=who.name,
        role=who.role.value,
        assets=addresses(),
        events=f"/events?threads={threads}",
        paused=queries.notices_of(runtime, key),
    )


def _welcome(site: Site, who: Visitor) -> Callable[[], bool]:
    """Make a function that returns whether a visitor may still read."""
    return partial(is_welcome, site, who)
