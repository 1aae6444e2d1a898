"""Serves the pages and forms that manage a conversation: rename, pin, archive, fork, clear, delete.

They work without a script: every form is answered with a redirect, or with the page and what is
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict, NotFound
from app.features.conversations.export import ROWS, export
from app.features.conversations.model import TITLE_CHARACTERS
from app.features.conversations.service import Conversations
from app.features.conversations.web import Talks, Who
from app.model.conversations import Contents, headline, path_of, title_of
from app.model.keys import PlaceKey
from app.model.text import count, size_words
from app.model.types import Thread
from app.model.workspaces import Unshipped
from app.server.login import SignedInRoute, Visitor
from app.server.page import queries
from app.server.page.actions import FormRoute
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import done, render
from app.server.site import RuntimeOf
from app.services import label_of
from app.services.web import events

TEMPLATE = Path(__file__).with_name("manage.html")
pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Row = Annotated[int | None, Query(ge=1)]
Where = Annotated[PlaceKey, Depends(queries.place_key)]


@pages.get("/manage/t/{service}/{name:path}")
async def manage(talks: Talks, who: Who, key: Where) -> HTMLResponse:
    """Show everything that can be done with a conversation."""
    return await _show(talks, who, key, "manage")


@pages.get("/clear/t/{service}/{name:path}")
async def ask_clear(talks: Talks, who: Who, key: Where) -> HTMLResponse:
    """Ask before what was said is deleted."""
    return await _show(talks, who, key, "clear")


@pages.get("/delete/t/{service}/{name:path}")
async def ask_delete(talks: Talks, who: Who, key: Where) -> HTMLResponse:
    """Say what is deleted with a conversation, and ask."""
    return await _show(talks, who, key, "delete", contents=await talks.contents(key))


@pages.get("/fork/t/{service}/{name:path}")
async def ask_fork(
    runtime: RuntimeOf, talks: Talks, who: Who, key: Where, *, after: Row = None, turn: Row = None
) -> HTMLResponse:
    """Say where a conversation is forked: after a message, a turn, or at its end."""
    row, words = await _find_row(runtime, key, after, turn)
    return await _show(talks, who, key, "fork", after=row, quote=headline(words))


@pages.get("/export/t/{service}/{name:path}")
async def export_thread(
    runtime: RuntimeOf,
    talks: Talks,
    _who: Who,
    key: Where,
    *,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "markdown",
) -> Response:
    """Send a whole conversation as a file."""
    thread = await talks.read(key)
    return await export(runtime, thread, form)


@forms.post("/rename/t/{service}/{name:path}")
async def rename(
    talks: Talks,
    who: Who,
    key: Where,
    title: Annotated[str, Form(max_length=TITLE_CHARACTERS)] = "",
) -> Response:
    """Give a conversation a title."""
    if not title.strip():
        return await _show(talks, who, key, "manage", problem="Write a title.")
    await talks.rename(key, title, who.name)
    return RedirectResponse(done.address(path_of(key), "thread-renamed"), 303)


@forms.post("/pin/t/{service}/{name:path}")
async def pin(talks: Talks, _who: Who, key: Where, on: Annotated[int, Form()]) -> Response:
    """Keep a conversation on top of the list, or no longer."""
    await talks.pin(key, pinned=bool(on))
    code = "thread-pinned" if on else "thread-unpinned"
    return RedirectResponse(done.address(path_of(key), code), 303)


@forms.post("/archive/t/{service}/{name:path}")
async def archive(talks: Talks, _who: Who, key: Where, on: Annotated[int, Form()]) -> Response:
    """Take a conversation out of the list, or put it back."""
    await talks.archive(key, archived=bool(on))
    if on:
        return RedirectResponse(done.address("/", "thread-archived"), 303)
    return RedirectResponse(done.address(path_of(key), "thread-back"), 303)


@forms.post("/fork/t/{service}/{name:path}")
async def fork(
    talks: Talks,
    _who: Who,
    key: Where,
    after: Annotated[int | None, Form(ge=1)] = None,
) -> Response:
    """Copy a conversation up to a row into a new thread."""
    made = await talks.fork(key, events.SERVICE, after=after)
    return RedirectResponse(done.address(path_of(made), "thread-forked"), 303)


@forms.post("/take-back/t/{service}/{name:path}")
async def take_back(
    runtime: RuntimeOf, talks: Talks, who: Who, key: Where, grant: Annotated[int, Form(ge=1)]
) -> Response:
    """Take back what a person always allowed."""
    try:
        await runtime.ledger.take_back(grant, who.name)
    except (Conflict, NotFound) as error:
        return await _show(talks, who, key, "manage", problem=_sentence(error))
    return RedirectResponse(done.address(path_of(key), "grant-ended"), 303)


@forms.post("/clear/t/{service}/{name:path}")
async def clear(talks: Talks, who: Who, key: Where) -> Response:
    """Delete what was said."""
    try:
        await talks.clear(key, who.name)
    except Conflict as error:
        return await _show(talks, who, key, "clear", problem=_sentence(error))
    return RedirectResponse(done.address(path_of(key), "thread-cleared"), 303)


@forms.post("/delete/t/{service}/{name:path}")
async def delete(
    talks: Talks, who: Who, key: Where, *, discard: Annotated[bool, Form()] = False
) -> Response:
    """Delete a conversation."""
    try:
        await talks.delete(key, discard=discard)
    except Conflict as error:
        contents = await talks.contents(key)
        return await _show(talks, who, key, "delete", contents=contents, problem=_sentence(error))
    return RedirectResponse(done.address("/", "thread-deleted"), 303)


async def _show(
    talks: Conversations, who: Visitor, key: PlaceKey, asked: Asked, **more: Any
) -> HTMLResponse:
    shown = Managed(
        await talks.read(key),
        asked,
        who.csrf,
        addresses(),
        service=label_of(key.service),
        **more,
    )
    page = render.feature_page(TEMPLATE, shown=shown)
    return HTMLResponse(page, status_code=409 if shown.problem else 200, headers=HEADERS)


async def _find_row(
    runtime: Runtime, key: PlaceKey, after: int | None, turn: int | None
) -> tuple[int | None, str]:
    """Find the last row of a message or a turn, and its words."""
    row, words, last = after, "", (after or 1) - 1
    if after is None and turn is None:
        return None, ""
    while rows := await runtime.stores.transcript.read_place(key, after=last, limit=ROWS):
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


Asked = Literal["manage", "clear", "fork", "delete"]


@dataclass(frozen=True, slots=True)
class Managed:
    """A conversation, and what a person is about to do with it."""

    thread: Thread
    asked: Asked
    csrf: str
    assets: Mapping[str, str]
    service: str = ""
    """What people call the platform that it is on; empty for the page itself."""
    quote: str = ""
    """The words after which it is forked; empty for its end."""
    after: int | None = None
    contents: Contents | None = None
    """What is deleted with it."""
    problem: str = ""

    @property
    def title(self) -> str:
        """Its title."""
        return title_of(self.thread)

    @property
    def path(self) -> str:
        """The path of its thread."""
        return path_of(self.thread.place)

    @property
    def lost(self) -> tuple[Unshipped, ...]:
        """The work that would be lost with it."""
        return () if self.contents is None else self.contents.unshipped

    @property
    def goes(self) -> tuple[str, ...]:
        """What is deleted with it, in words."""
        return () if self.contents is None else tuple(_goes(self.contents))

    @property
    def stays(self) -> tuple[str, ...]:
        """What is not deleted with it, in words."""
        return () if self.contents is None else tuple(_stays(self.contents, self.service))


def _goes(found: Contents) -> Iterator[str]:
    held = found.held
    yield f"{count(held.messages, 'message')} and {count(held.turns, 'turn')} of its agents"
    if held.uploads:
        names = ", ".join(url.partition("/")[2] for url in held.uploads[:5])
        more = f" and {len(held.uploads) - 5} more" if len(held.uploads) > 5 else ""
        yield f"{count(len(held.uploads), 'file')}: {names}{more}"
    if found.disk_bytes:
        size = size_words(found.disk_bytes)
        yield f"Workspaces, clones and agents' homes on this machine ({size})"
    if held.schedules:
        yield count(held.schedules, "schedule")
    if len(held.places) > 1:
        others = ", ".join(each.name for each in held.places if each != found.thread.place)
        yield f"What the bridge keeps of {others}, where the same agents work"


def _stays(found: Contents, service: str) -> Iterator[str]:
    if service:
        posts = f", {count(found.held.posts, 'post')} of the bridge among them" * bool(
            found.held.posts
        )
        yield f"Messages in {service}{posts}"
    for view in found.workspaces:
        if view.kind == "folder":
            yield f"Your folder {view.name}"
        elif view.sent:
            link = f" ({view.link})" if view.link else ""
            yield f"Branch {view.branch} on {view.name}{link}"
    yield "What agents keep outside of the bridge, the bridge's log, and notes in agents' memory"
