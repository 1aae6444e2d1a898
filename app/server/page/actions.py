"""Handles page actions: send a message, answer an ask, stop an agent, run or drop the queue.

A message has an id that the page made. The same id is taken once, however often it is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Form, HTTPException, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from app.core.runtime import Runtime
from app.errors import AgentError, Conflict
from app.model.conversations import headline, path_of
from app.model.inbound import WhileBusy
from app.model.keys import PlaceKey
from app.model.types import OPEN_TURN_STATES, File, Session, Turn
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page import queries, uploads
from app.server.page.view.listing import stoppable
from app.server.page.view.roster import MentionNames
from app.server.shapes import NAME, TEXT_CHARACTERS
from app.server.site import RuntimeOf, settle
from app.services.web import events

FIELDS: Final = 10
TEXT_BYTES: Final = 4 * TEXT_CHARACTERS
BODY_BYTES: Final = uploads.FILES * (uploads.FILE_BYTES + 4096) + TEXT_BYTES
"""The size limit of one message with its files."""


_ID: Final = re.compile(r"[0-9a-f]{32}")
_TURNS: Final = r"^(t[0-9]{1,15} ?)*$"
"""The elements of turns on the page."""


class FormRoute(SignedInRoute):
    """A route for forms: never reads the body of a stranger or one that is too large."""

    def check(self, request: Request) -> None:
        """Check the announced length."""
        length = request.headers.get("content-length", "")
        if not length.isdigit():
            raise HTTPException(411, "send a Content-Length header")
        if int(length) > BODY_BYTES:
            raise HTTPException(413, "the message is too large; send fewer or smaller files")


router = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@router.post("/send")
async def send(request: Request, runtime: RuntimeOf, who: Who) -> Response:
    """Send a message, in an existing thread or in a new one."""
    async with request.form(
        max_files=uploads.FILES, max_fields=FIELDS, max_part_size=TEXT_BYTES
    ) as form:
        name = _read_id(form)
        said = await _read_message(runtime, who, form, name)
    await _settle(runtime, said, name)
    await _make_way(runtime, said)
    path = path_of(events.place_key(said.thread))
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"path": path}, headers={"Cache-Control": "no-store"})
    return RedirectResponse(path, 303)


@router.post("/repeat/t/web/{thread}")
async def repeat(runtime: RuntimeOf, who: Who, request: Request, thread: str) -> Response:
    """Send an earlier message again: one that no agent answered, or the messages of a turn."""
    async with request.form(max_files=0, max_fields=FIELDS + len(runtime.agents)) as form:
        name = _read_id(form)
        to = tuple(agent for agent in form.getlist("to") if agent in runtime.agents)
        message, turn = _number(form, "message"), _number(form, "turn")
    found = await words_of(runtime, events.place_key(thread), message=message, turn=turn)
    if found is None or not to:
        raise Conflict("there is no message to send again")
    said = events.PageMessage(
        thread=thread,
        text=found.text,
        spoken=queries.roster_of(runtime).names.after(found.text),
        speaker_id=who.id,
        speaker_name=who.name,
        mentions=to,
        files=found.files,
        repeats=events.SaidBefore(message=found.message, turn=turn),
    )
    await _settle(runtime, said, name)
    return Response(status_code=204)


@dataclass(frozen=True, slots=True)
class SaidWords:
    """What a person said, to be said again."""

    message: int
    text: str
    files: tuple[events.SaidFile, ...]


async def words_of(
    runtime: Runtime, key: PlaceKey, *, message: int | None, turn: int | None
) -> SaidWords | None:
    """Find what a person said: one message of a place, or all that became part of a turn."""
    if turn is not None:
        kept = runtime.stores.turns.turn(turn)
        session = runtime.stores.sessions.session(kept.session) if kept is not None else None
        if session is None or session.place != key:
            return None
        said = runtime.stores.turns.messages(turn)
        files = tuple(file for each in said for file in each.files)
        text = "\n\n".join(each.text for each in said)
        return SaidWords(said[0].number, text, _said_files(files)) if said else None
    rows = await runtime.stores.transcript.read_place(key, after=(message or 0) - 1, limit=1)
    if not rows or rows[0].id != message or rows[0].kind != "message":
        return None
    stored = (File(**file) for file in rows[0].data.get("files", ()))
    return SaidWords(rows[0].id, rows[0].text, _said_files(stored))


def _said_files(files: Iterable[File]) -> tuple[events.SaidFile, ...]:
    return tuple(
        events.SaidFile(name=file.name, media_type=file.media_type, url=file.url) for file in files
    )


async def _read_message(
    runtime: Runtime, who: Visitor, form: FormData, name: str
) -> events.PageMessage:
    """Read a message from a form, and store its files."""
    text, thread = _read_text(form), _field(form, "thread")
    sent = [
        item for item in form.getlist("files") if isinstance(item, UploadFile) and item.filename
    ]
    if not text and not sent:
        raise HTTPException(422, "the message is empty; write something or attach a file")
    if thread and not re.fullmatch(NAME, thread):
        raise HTTPException(422, "this is not a thread of the page")
    names = queries.roster_of(runtime).names
    picked = _field(form, "to")
    mentions = await _find_agents(runtime, names, text, picked, thread)
    repository = await _find_repository(runtime, form, thread, mentions)
    try:
        files = await uploads.keep(runtime.uploads, sent)
    except uploads.TooLarge as error:
        raise HTTPException(413, str(error)) from None
    return events.PageMessage(
        # From the id: a first message that is sent twice begins one thread.
        thread=thread or name[:12],
        text=text or "See the attached " + ("file." if len(files) == 1 else "files."),
        spoken=names.after(text),
        speaker_id=who.id,
        speaker_name=who.name,
        mentions=mentions,
        repository=repository,
        files=files,
        rejects=_number(form, "rejects"),
        while_busy=_when(form),
        hands_over=picked if thread and mentions == (picked,) else "",
        title=headline(names.after(text)) or text or files[0].name,
    )


@router.post("/asks/{ask}")
async def answer(
    runtime: RuntimeOf, who: Who, ask: int, option: Annotated[str, Form()]
) -> Response:
    """Answer an ask; the first answer counts."""
    await runtime.ledger.answer(ask, option, who.name)
    return Response(status_code=204)


@router.post("/stop/t/{service}/{name:path}")
async def stop(
    runtime: RuntimeOf,
    _who: Who,
    service: str,
    name: str,
    session: Annotated[int | None, Form()] = None,
    turns: Annotated[str, Form(pattern=_TURNS, max_length=1000)] = "",
) -> Response:
    """Stop one agent of a thread, or all of them; queued messages are held.

    A stop may arrive late, kept by a browser: it counts only for the turns that it was meant for.
    """
    meant = [int(each[1:]) for each in turns.split()]
    for each in runtime.stores.sessions.in_place(queries.place_key(service, name)):
        if stoppable(each) and session in {None, each.id} and not _are_over(runtime, each, meant):
            await runtime.manager.stop(each.id)
    return Response(status_code=204)


@router.post("/subagents/{number}/stop")
async def stop_subagent(runtime: RuntimeOf, _who: Who, number: int) -> Response:
    """Stop one sub-agent; its agent and the others go on."""
    await runtime.manager.stop_subagent(number)
    return Response(status_code=204)


def _are_over(runtime: Runtime, session: Session, meant: Sequence[int]) -> bool:
    """Tell whether a stop named turns of a session, and all of them have ended."""
    found = [turn for each in meant if (turn := runtime.stores.turns.turn(each)) is not None]
    own = [turn for turn in found if turn.session == session.id]
    return bool(own) and not any(_is_open(runtime, turn) for turn in own)


def _is_open(runtime: Runtime, turn: Turn | None) -> bool:
    """Tell whether a turn, or the one that continues it, goes on."""
    while turn is not None and turn.successor is not None:
        turn = runtime.stores.turns.turn(turn.successor)
    return turn is not None and turn.state in OPEN_TURN_STATES


@router.post("/queue/{session}/{what}")
async def queue(
    runtime: RuntimeOf, _who: Who, session: int, what: Literal["now", "drop"]
) -> Response:
    """Run the messages queued for an agent now, or drop them."""
    if not runtime.stores.turns.waiting(session):
        raise Conflict("nothing is queued any more")
    await runtime.manager.queue(session, what)
    return Response(status_code=204)


@router.post("/set/{session}/{kind}")
async def configure(
    runtime: RuntimeOf,
    _who: Who,
    session: int,
    kind: Literal["mode", "model"],
    value: Annotated[str, Form(max_length=200)],
) -> Response:
    """Set the mode or model of an agent in a thread."""
    try:
        await runtime.manager.configure(session, kind, value)
    except AgentError as error:
        raise Conflict(str(error)) from None
    return Response(status_code=204)


async def _settle(runtime: Runtime, said: events.PageMessage, name: str) -> None:
    """Send a message, for the default agent."""
    carrier = runtime.agents.default.id
    await settle(runtime, events.delivery(said, carrier, now=runtime.clock.now(), name=name))


async def _make_way(runtime: Runtime, said: events.PageMessage) -> None:
    """Let words that reject an ask interrupt the work they are about."""
    if said.rejects is None:
        return
    session = runtime.ledger.session(said.rejects)
    if runtime.stores.turns.next_turn(session.id) is not None:
        await runtime.manager.queue(session.id, "now")


async def _find_agents(
    runtime: Runtime, names: MentionNames, text: str, to: str, thread: str
) -> tuple[str, ...]:
    """Return the agents a message is for: mentioned, picked, else the usual ones of the page."""
    if mentioned := names.mentioned(text):
        return mentioned
    if to in runtime.agents:
        return (to,)
    if not thread:
        return (await queries.usual_agent(runtime),)
    # A command without a mention is for the whole thread.
    if runtime.dispatcher.read_command(names.after(text)) is not None:
        return ()
    return queries.listeners(runtime, events.place_key(thread))


def _read_id(form: FormData) -> str:
    """Return the id that the page gave a message; a plain form has none."""
    name = _field(form, "id")
    return name if _ID.fullmatch(name) else uuid4().hex


def _number(form: FormData, name: str) -> int | None:
    value = _field(form, name)
    return int(value) if value.isdecimal() and len(value) < 16 else None


async def _find_repository(
    runtime: Runtime, form: FormData, thread: str, agents: Sequence[str]
) -> str:
    """Return where a new thread is to work, checked for the first of its agents."""
    chosen = _field(form, "repository").strip()
    if thread or not chosen or not agents:
        return ""
    return await runtime.picker.check(queries.NEW_THREAD, agents[0], chosen)


def _read_text(form: FormData) -> str:
    text = _field(form, "text").replace("\r\n", "\n").strip()
    if len(text) > TEXT_CHARACTERS:
        raise HTTPException(
            413, f"the message has more than {TEXT_CHARACTERS} characters; attach a file instead"
        )
    return text


def _when(form: FormData) -> WhileBusy:
    """Return when the message is meant to reach a working agent."""
    match _field(form, "while_busy"):
        case "queue":
            return "queue"
        case "now":
            return "now"
        case _:
            return "steer"


def _field(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""
