"""Serves the pages and forms that manage a conversation: rename, pin, archive, fork, clear, delete.

They work without a script: every form is answered with a redirect, or with the page and what is
wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Form, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import BridgeError, Conflict, NotFound
from app.model.conversations import Wanted
from app.model.keys import PlaceKey
from app.model.titles import headline, path_of
from app.server.conversation_shapes import TITLE_CHARACTERS
from app.server.conversations_api import export
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page import queries
from app.server.page.actions import FormRoute
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import done, render
from app.server.page.view.managing import Asked, Managed
from app.server.parts import Parts, PartsOf
from app.services import label_of
from app.services.web import events

ROWS: Final = 1_000
"""Rows per read while the end of a turn is looked for."""
YEAR_SECONDS: Final = 365 * 24 * 3600

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]
Row = Annotated[int | None, Query(ge=1)]


# Pages.


@pages.get("/manage/t/{service}/{name:path}")
async def manage(parts: PartsOf, who: Who, service: str, name: str) -> HTMLResponse:
    """Show everything that can be done with a conversation."""
    return await _show(parts, who, queries.place_key(service, name), "manage")


@pages.get("/clear/t/{service}/{name:path}")
async def ask_clear(parts: PartsOf, who: Who, service: str, name: str) -> HTMLResponse:
    """Ask before what was said is deleted."""
    return await _show(parts, who, queries.place_key(service, name), "clear")


@pages.get("/delete/t/{service}/{name:path}")
async def ask_delete(parts: PartsOf, who: Who, service: str, name: str) -> HTMLResponse:
    """Say what is deleted with a conversation, and ask."""
    key = queries.place_key(service, name)
    return await _show(parts, who, key, "delete", contents=await parts.talks.contents(key))


@pages.get("/fork/t/{service}/{name:path}")
async def ask_fork(
    parts: PartsOf, who: Who, service: str, name: str, *, after: Row = None, turn: Row = None
) -> HTMLResponse:
    """Say where a conversation is forked: after a message, a turn, or at its end."""
    key = queries.place_key(service, name)
    row, words = await _find_row(parts, key, after, turn)
    return await _show(parts, who, key, "fork", after=row, quote=headline(words))


@pages.get("/export/t/{service}/{name:path}")
async def export_thread(
    parts: PartsOf,
    _who: Who,
    service: str,
    name: str,
    *,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "markdown",
) -> Response:
    """Send a whole conversation as a file."""
    thread = await parts.talks.read(queries.place_key(service, name))
    return await export(parts, thread, form)


@pages.get("/latest/{agent}")
async def open_latest(parts: PartsOf, _who: Who, agent: str) -> Response:
    """Go to the most recent conversation with an agent, else begin one."""
    card = parts.find_agent(agent)
    found = await parts.threads.list(Wanted(agent=card.id), limit=1)
    return RedirectResponse(path_of(found[0].place) if found else f"/?to={card.id}", 303)


@pages.get("/grouped")
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


# Forms.


@forms.post("/rename/t/{service}/{name:path}")
async def rename(
    parts: PartsOf,
    who: Who,
    service: str,
    name: str,
    title: Annotated[str, Form(max_length=TITLE_CHARACTERS)] = "",
) -> Response:
    """Give a conversation a title."""
    key = queries.place_key(service, name)
    if not title.strip():
        return await _show(parts, who, key, "manage", problem="Write a title.")
    await parts.talks.rename(key, title, who.name)
    return RedirectResponse(done.address(path_of(key), "thread-renamed"), 303)


@forms.post("/pin/t/{service}/{name:path}")
async def pin(
    parts: PartsOf, _who: Who, service: str, name: str, on: Annotated[int, Form()]
) -> Response:
    """Keep a conversation on top of the list, or no longer."""
    key = queries.place_key(service, name)
    await parts.talks.pin(key, pinned=bool(on))
    code = "thread-pinned" if on else "thread-unpinned"
    return RedirectResponse(done.address(path_of(key), code), 303)


@forms.post("/archive/t/{service}/{name:path}")
async def archive(
    parts: PartsOf, _who: Who, service: str, name: str, on: Annotated[int, Form()]
) -> Response:
    """Take a conversation out of the list, or put it back."""
    key = queries.place_key(service, name)
    await parts.talks.archive(key, archived=bool(on))
    if on:
        return RedirectResponse(done.address("/", "thread-archived"), 303)
    return RedirectResponse(done.address(path_of(key), "thread-back"), 303)


@forms.post("/fork/t/{service}/{name:path}")
async def fork(
    parts: PartsOf,
    _who: Who,
    service: str,
    name: str,
    after: Annotated[int | None, Form(ge=1)] = None,
) -> Response:
    """Copy a conversation up to a row into a new thread."""
    key = queries.place_key(service, name)
    made = await parts.talks.fork(key, events.SERVICE, after=after)
    return RedirectResponse(done.address(path_of(made), "thread-forked"), 303)


@forms.post("/take-back/t/{service}/{name:path}")
async def take_back(
    parts: PartsOf, who: Who, service: str, name: str, grant: Annotated[int, Form(ge=1)]
) -> Response:
    """Take back what a person always allowed."""
    key = queries.place_key(service, name)
    try:
        await parts.ledger.take_back(grant, who.name)
    except (Conflict, NotFound) as error:
        return await _show(parts, who, key, "manage", problem=_sentence(error))
    return RedirectResponse(done.address(path_of(key), "grant-ended"), 303)


@forms.post("/clear/t/{service}/{name:path}")
async def clear(parts: PartsOf, who: Who, service: str, name: str) -> Response:
    """Delete what was said."""
    key = queries.place_key(service, name)
    try:
        await parts.talks.clear(key, who.name)
    except Conflict as error:
        return await _show(parts, who, key, "clear", problem=_sentence(error))
    return RedirectResponse(done.address(path_of(key), "thread-cleared"), 303)


@forms.post("/delete/t/{service}/{name:path}")
async def delete(
    parts: PartsOf, who: Who, service: str, name: str, *, discard: Annotated[bool, Form()] = False
) -> Response:
    """Delete a conversation."""
    key = queries.place_key(service, name)
    try:
        await parts.talks.delete(key, discard=discard)
    except Conflict as error:
        contents = await parts.talks.contents(key)
        return await _show(parts, who, key, "delete", contents=contents, problem=_sentence(error))
    return RedirectResponse(done.address("/", "thread-deleted"), 303)


async def _show(
    parts: Parts, who: Visitor, key: PlaceKey, asked: Asked, **more: Any
) -> HTMLResponse:
    shown = Managed(
        await parts.talks.read(key),
        asked,
        who.csrf,
        addresses(),
        service=label_of(key.service),
        **more,
    )
    status = 409 if shown.problem else 200
    return HTMLResponse(render.managed(shown), status_code=status, headers=HEADERS)


async def _find_row(
    parts: Parts, key: PlaceKey, after: int | None, turn: int | None
) -> tuple[int | None, str]:
    """Find the last row of a message or a turn, and its words."""
    row, words, last = after, "", (after or 1) - 1
    if after is None and turn is None:
        return None, ""
    while rows := await parts.transcript.read_place(key, after=last, limit=ROWS):
        for each in rows:
            if each.id == after or (turn is not None and each.turn == turn):
                row = each.id
                words = each.text if each.kind in {"message", "text"} else words
        last = rows[-1].id
        if after is not None:
            break
    if row is None:
        raise NotFound("turn", turn or 0)
    return row, words


def _sentence(error: BridgeError) -> str:
    words = str(error)
    return f"{words[:1].upper()}{words[1:]}."
