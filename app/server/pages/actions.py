"""What people do on the page: say something, answer an ask, stop an agent, settle what waits."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Final, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Form, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from app.errors import Conflict, StoreUnavailable
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.pages import sight, uploads
from app.server.parts import Parts, PartsOf
from app.server.shapes import NAME, TEXT_CHARACTERS
from app.services.web import events
from app.services.web.mentions import Names
from app.services.web.views import path_of, stoppable

SETTLE_SECONDS: Final = 30.0
"""How long a page waits to learn what became of a message; it is kept whatever happens."""
TITLE_CHARACTERS: Final = 70
"""What a title may hold: what the list and the head can show."""
FIELDS: Final = 10
TEXT_BYTES: Final = 4 * TEXT_CHARACTERS
BODY_BYTES: Final = uploads.FILES * (uploads.FILE_BYTES + 4096) + TEXT_BYTES
"""What one message may weigh, files and all."""


_MARKS: Final = re.compile(r"[`*#>]+")


class FormRoute(SignedInRoute):
    """A route for forms: nothing is read of a stranger's, nor of one that is too large."""

    def check(self, request: Request) -> None:
        """Look at the length that was announced."""
        length = request.headers.get("content-length", "")
        if not length.isdigit():
            raise HTTPException(411, "say how long the body is")
        if int(length) > BODY_BYTES:
            raise HTTPException(413, "that is more than can be sent at once")


router = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@router.post("/send")
async def send(request: Request, parts: PartsOf, who: Who) -> Response:
    """Say something, in a thread that exists or in a new one."""
    async with request.form(
        max_files=uploads.FILES, max_fields=FIELDS, max_part_size=TEXT_BYTES
    ) as form:
        said = await _said(parts, who, form)
    await _settle(parts, said)
    path = path_of(events.place_key(said.thread))
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"path": path}, headers={"Cache-Control": "no-store"})
    return RedirectResponse(path, 303)


async def _said(parts: Parts, who: Visitor, form: FormData) -> events.Said:
    """Make a message of a form, and keep its files."""
    text, thread = _words(form), _field(form, "thread")
    sent = [
        item for item in form.getlist("files") if isinstance(item, UploadFile) and item.filename
    ]
    if not text and not sent:
        raise HTTPException(422, "there is nothing to send")
    if thread and not re.fullmatch(NAME, thread):
        raise HTTPException(422, "this is no thread of the page")
    try:
        files = await uploads.keep(parts.uploads, sent)
    except uploads.TooLarge as error:
        raise HTTPException(413, str(error)) from None
    names = sight.cast_of(parts).names
    return events.Said(
        thread=thread or uuid4().hex[:12],
        text=text or "See the attached " + ("file." if len(files) == 1 else "files."),
        spoken=names.after(text),
        speaker_id=who.name,
        speaker_name=who.name,
        mentions=await _meant(parts, names, text, _field(form, "to"), new=not thread),
        files=files,
        title=_title(names, text) or text or files[0].name,
    )


@router.post("/asks/{ask}")
async def answer(parts: PartsOf, who: Who, ask: int, option: Annotated[str, Form()]) -> Response:
    """Answer an ask; the first answer counts."""
    await parts.ledger.answer(ask, option, who.name)
    return Response(status_code=204)


@router.post("/stop/t/{service}/{name:path}")
async def stop(
    parts: PartsOf,
    _who: Who,
    service: str,
    name: str,
    session: Annotated[int | None, Form()] = None,
) -> Response:
    """Stop one agent of a thread, or all of them; what waits is held."""
    for each in parts.sessions.in_place(sight.place_key(service, name)):
        if stoppable(each) and session in {None, each.id}:
            await parts.manager.stop(each.id)
    return Response(status_code=204)


@router.post("/queue/{session}/{what}")
async def queue(parts: PartsOf, _who: Who, session: int, what: Literal["now", "drop"]) -> Response:
    """Run what waits for an agent now, or drop it."""
    if not parts.turns.waiting(session):
        raise Conflict("nothing waits any more")
    await parts.manager.queue(session, what)
    return Response(status_code=204)


async def _settle(parts: Parts, said: events.Said) -> None:
    """Send a message down the same pipe as everybody's, on behalf of the default agent."""
    carrier = next(card.name for card in parts.agents.values() if card.default)
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            await parts.intake.settle(events.delivery(said, carrier, now=parts.clock.now()))
    except TimeoutError:
        raise StoreUnavailable("the message is kept and waits to be dealt with") from None


async def _meant(parts: Parts, names: Names, text: str, to: str, *, new: bool) -> tuple[str, ...]:
    """Tell whom a message names: in words, else by the picker, else in a new thread the usual."""
    if mentioned := names.mentioned(text):
        return mentioned
    if to in parts.agents:
        return (to,)
    return (await sight.usual_agent(parts),) if new else ()


def _words(form: FormData) -> str:
    text = _field(form, "text").replace("\r\n", "\n").strip()
    if len(text) > TEXT_CHARACTERS:
        raise HTTPException(413, f"that is more than {TEXT_CHARACTERS} characters; attach a file")
    return text


def _title(names: Names, text: str) -> str:
    """Take the first line, without signs of Markdown, cut between two words."""
    line = _MARKS.sub("", names.after(text).partition("\n")[0]).strip()
    if len(line) <= TITLE_CHARACTERS:
        return line
    return line[:TITLE_CHARACTERS].rpartition(" ")[0].rstrip(" ,;:.") + " …"


def _field(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""
