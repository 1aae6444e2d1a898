"""Opens, closes and settles asks inside the caller's commit: questions, late answers, offers.

Only questions that an agent asked with a tool of the bridge outlive the turn that asked.
An offer is no part of a turn's work: it outlives the turn that shows it, and starts another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    bindparam,
    cast,
    delete,
    insert,
    select,
    update,
)

from app.model.asks import LATE, TAKE, text_of
from app.model.delegation import ANSWERS, SERVICE
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import BridgeSessionRequest, Entry, Speaker, TurnRef
from app.model.updates import AskRequest, AskView
from app.store.commits.admission import attach
from app.store.dialects import JsonField
from app.store.posts import end_post, insert_post
from app.store.tables import (
    ANSWER,
    ASK_HOLDS,
    ASK_IS_OPEN,
    ASK_STAYS,
    OFFER,
    ask,
    checkout,
    delegation,
    memory_note,
    message,
    place,
    post,
    session,
    surface,
    transcript,
    turn,
)
from app.store.transcript import insert_entries, insert_in_place
from app.store.values import ask_of

_ROOT = (
    select(delegation)
    .join(turn, turn.c.id == delegation.c.turn)
    .join(surface, surface.c.id == turn.c.surface)
    .where(delegation.c.turn == bindparam("of"), surface.c.service == SERVICE)
)
_FIRST_SURFACE = (
    select(surface.c.service, surface.c.external, surface.c.agent)
    .where(surface.c.session == bindparam("of"))
    .order_by(surface.c.id)
    .limit(1)
)


def ask_post_key(ask_id: int) -> str:
    """Return the key of the post that shows an ask."""
    return f"ask:{ask_id}"


def copy_post_key(ask_id: int, reaches: str) -> str:
    """Return the key of a further post that shows an ask, by whom it reaches."""
    return f"{ask_post_key(ask_id)}:{reaches}"


def target_of(connection: Connection, turn_id: int) -> SessionKey:
    """Return the conversation in which a turn was requested."""
    row = connection.execute(
        select(surface.c.service, surface.c.external, surface.c.agent)
        .join(turn, turn.c.surface == surface.c.id)
        .where(turn.c.id == turn_id)
    ).one()
    return SessionKey(*row)


def root_of(connection: Connection, turn_id: int) -> Row[Any] | None:
    """Find where people see what a turn asks, if its own place is one of agents."""
    return connection.execute(_ROOT, {"of": turn_id}).first()


def shown_in(connection: Connection, turn_id: int) -> SessionKey:
    """Return the conversation in which people see what a turn asks."""
    root = root_of(connection, turn_id)
    if root is None:
        return target_of(connection, turn_id)
    if root.root_turn is not None:
        return target_of(connection, root.root_turn)
    return SessionKey(*connection.execute(_FIRST_SURFACE, {"of": root.root_session}).one())


def open_ask(
    connection: Connection,
    request: AskRequest,
    ref: TurnRef,
    now: float,
    *,
    deadline: float,
    resume_at: float | None = None,
    adrift: bool = False,
) -> tuple[int, int]:
    """Store an ask, its transcript row and its post; return the ids of ask and post."""
    root = root_of(connection, ref.turn)
    generation = select(session.c.generation).where(session.c.id == ref.session).scalar_subquery()
    ask_id = connection.execute(
        insert(ask)
        .values(
            session=ref.session,
            turn=ref.turn,
            generation=generation,
            kind=request.kind,
            call=request.call,
            title=request.title,
            subject=request.subject,
            options=[asdict(option) for option in request.options],
            free_text=request.free_text,
            tool_kind=request.tool_kind,
            arguments_hash=request.arguments_hash,
            scopes={option: asdict(scope) for option, scope in request.scopes.items()} or None,
            deadline=deadline,
            resume_at=resume_at,
            adrift=adrift,
            host=None if root is None else root.root_session,
            created_at=now,
        )
        .returning(ask.c.id)
    ).scalar_one()
    target = shown_in(connection, ref.turn)
    target = replace(target, agent=request.voice or target.agent)
    content = _shown(int(ask_id), request)
    post = NewPost(ask_post_key(ask_id), target, content, ref.session, ref.turn)
    post_id = insert_post(connection, post, now)
    shown = _entry(int(ask_id), request, ref, deadline=deadline, resume_at=resume_at)
    _tell(connection, shown, root, now)
    return int(ask_id), post_id


def _tell(connection: Connection, entry: Entry, root: Row[Any] | None, now: float) -> None:
    """Write what the page shows of an ask, first where people see the work of its agent."""
    entries = [entry]
    if root is not None and root.root_turn is not None:
        entries.insert(0, replace(entry, session=root.root_session, turn=root.root_turn))
    insert_entries(connection, entries, now)


def _shown(ask_id: int, request: AskRequest) -> PostContent:
    """Build the content of an ask's post while it is open."""
    return PostContent(
        kind="ask",
        state="open",
        text=text_of(request.title, request.subject),
        ask=ask_id,
        options=request.options,
        free_text=request.free_text,
        url=request.url,
        view=_link_to_ask(request.view, ask_id),
    )


def _link_to_ask(view: AskView | None, ask_id: int) -> AskView | None:
    """Make the link lead to the ask itself."""
    return replace(view, link=f"{view.link}#a{ask_id}") if view and view.link else view


def _entry(
    ask_id: int, request: AskRequest, ref: TurnRef, *, deadline: float, resume_at: float | None
) -> Entry:
    """Build what the page shows of an ask while it is open."""
    data = {
        "ask": ask_id,
        "state": "open",
        "kind": request.kind,
        "tool_kind": request.tool_kind,
        "options": [asdict(option) for option in request.options],
        "free_text": request.free_text,
        "call": request.call,
        "deadline": deadline,
    }
    if resume_at is not None:
        data["resume_at"] = resume_at
    if request.whole is not None:
        data["view"] = asdict(request.whole)
    if request.until is not None:
        data["until"] = request.until
    if request.url:
        data["url"] = request.url
    return Entry(kind="ask", text=request.title, data=data, session=ref.session, turn=ref.turn)


def close_ask(
    connection: Connection,
    row: Row[Any],
    change: dict[str, Any],
    note: Note,
    now: float,
    data: dict[str, Any] | None = None,
) -> list[int]:
    """Close an open ask; return the posts that say so, everywhere it is shown."""
    connection.execute(update(ask).where(ask.c.id == row.id).values(closed_at=now, **change))
    said = {"ask": row.id, **change, **(data or {})}
    entry = Entry(kind="ask", note=note, data=said, session=row.session, turn=row.turn)
    _tell(connection, entry, root_of(connection, row.turn), now)
    shown = [ask_post_key(row.id), *_copies(connection, row)]
    ended = [end_post(connection, each, change["state"], note) for each in shown]
    return [post_id for each in ended for post_id in present(each)]


def _copies(connection: Connection, row: Row[Any]) -> Sequence[str]:
    """List the keys of the further posts that show an ask."""
    # By the turns of its session: there is no index for the beginning of a key.
    turns = select(turn.c.id).where(turn.c.session == row.session)
    copies = post.c.key.startswith(copy_post_key(row.id, ""), autoescape=True)
    query = select(post.c.key).where(post.c.turn.in_(turns), copies).order_by(post.c.id)
    return connection.execute(query).scalars().all()


def present(post: int | None) -> list[int]:
    """List a post, if there is one."""
    return [] if post is None else [post]


def close_asks(
    connection: Connection,
    which: ColumnElement[bool],
    state: Literal["cancelled", "lost"],
    note: Note,
    now: float,
) -> list[int]:
    """Close the open asks among these; return their posts. Offers outlive their turn."""
    still = (ask.c.state == "open") & ASK_HOLDS
    rows = connection.execute(select(ask).where(which, still)).all()
    return [
        post for row in rows for post in close_ask(connection, row, {"state": state}, note, now)
    ]


def take_along(connection: Connection, turn_id: int, now: float) -> list[int]:
    """Let a turn begin that waits for word whether it is still wanted: its people are back."""
    waits = (turn.c.id == turn_id) & (turn.c.paused == LATE)
    if not connection.execute(update(turn).where(waits).values(paused=None)).rowcount:
        return []
    asked = (ask.c.turn == turn_id) & (ask.c.call == LATE)
    return close_asks(connection, asked, "cancelled", Note(NoteCode.NOT_NEEDED), now)


def leave_questions(connection: Connection, which: ColumnElement[bool]) -> None:
    """Let nothing wait for the open questions among these asks; they stay open."""
    connection.execute(update(ask).where(which, ASK_IS_OPEN, ASK_STAYS).values(adrift=True))


def outlives(connection: Connection, turn_id: int) -> bool:
    """Tell whether the questions of a turn stay open when it is done.

    What an agent does for another agent ends with its turn, and so do its questions.
    """
    where = select(surface.c.service).join(turn, turn.c.surface == surface.c.id)
    service = connection.execute(where.where(turn.c.id == turn_id)).scalar_one()
    return str(service) != SERVICE


def tell_unused_answers(connection: Connection, turn_id: int, now: float) -> list[int]:
    """Begin turns for the answers that came during a turn and that its agent did not read."""
    told = select(turn.c.told).where(turn.c.id == turn_id).scalar_subquery()
    since = select(cast(JsonField(transcript.c.data, "ask"), Integer)).where(
        transcript.c.turn == turn_id, transcript.c.kind == "ask", transcript.c.id > told
    )
    unused = connection.execute(
        select(ask.c.id)
        .where(ask.c.turn == turn_id, ask.c.state == "answered", ask.c.adrift.is_(True), ASK_STAYS)
        .where(ask.c.id.in_(since.correlate(None)))
        .order_by(ask.c.id)
    )
    return [tell_answer(connection, ask_id, now)[1] for ask_id in unused.scalars().all()]


def tell_answer(connection: Connection, ask_id: int, now: float) -> tuple[TurnRef, int]:
    """Begin a turn with the answer to a question; return it and the post to send."""
    row = connection.execute(select(ask).where(ask.c.id == ask_id)).one()
    asked = ask_of(row)
    by = Speaker(row.speaker, asked.answered_by or "")
    new = {
        "message_id": f"{ANSWER}{ask_id}",
        "pointed": ANSWERS.format(question=asked.title),
    }
    connection.execute(update(ask).where(ask.c.id == ask_id).values(adrift=False))
    return _begin(connection, row.turn, asked.answer_name, by, new, now, answers=[ask_id])


def _begin(
    connection: Connection,
    turn_id: int,
    prompt: str,
    speaker: Speaker,
    new: dict[str, str],
    now: float,
    **data: Any,
) -> tuple[TurnRef, int]:
    """Begin a turn where another was asked for, with a message that was never sent there."""
    shown = connection.execute(
        select(surface, place.c.name)
        .join(turn, turn.c.surface == surface.c.id)
        .join(place, place.c.id == surface.c.place)
        .where(turn.c.id == turn_id)
    ).one()
    request = BridgeSessionRequest(
        external_session_id=shown.external,
        service_name=shown.service,
        agent_name=shown.agent,
        prompt=prompt,
        speaker=speaker,
        message_id="",  # there is no message to answer
        surface=PlaceKey(shown.service, shown.name),
    )
    said = Entry("message", prompt, speaker.name, {"files": [], "to": [shown.agent], **data})
    number = insert_in_place(connection, shown.place, said, now)
    row = {
        "id": number,
        "place": shown.place,
        "speaker_id": speaker.id or speaker.name,
        "speaker_kind": speaker.kind,
        "files": [],
    }
    connection.execute(insert(message), row | new)
    return attach(connection, request, shown.place, number, now)


HANDED_ON = Note(NoteCode.OFFER_HANDED_ON)


def open_offers(connection: Connection, session_id: int) -> list[Row[Any]]:
    """List a session's open offers."""
    mine = select(ask).where(ask.c.session == session_id, ASK_IS_OPEN, ask.c.kind == "offer")
    return list(connection.execute(mine.order_by(ask.c.id)))


def withdraw_offers(connection: Connection, session_id: int, note: Note, now: float) -> list[int]:
    """Withdraw a session's offers; return the posts that say so."""
    return [
        post
        for row in open_offers(connection, session_id)
        for post in close_ask(connection, row, {"state": "cancelled"}, note, now)
    ]


def hand_on_offers(connection: Connection, session_id: int, number: int, now: float) -> list[int]:
    """Add the open offers to a message as context: its author has seen them."""
    offered = open_offers(connection, session_id)
    if not offered:
        return []
    this = message.c.id == number
    context = connection.execute(select(message.c.context).where(this)).scalar_one()
    texts = [text_of(row.title, row.subject) for row in offered]
    joined = "\n\n".join(filter(None, (context, *texts)))
    connection.execute(update(message).where(this).values(context=joined))
    return withdraw_offers(connection, session_id, HANDED_ON, now)


def decide_offer(
    connection: Connection, row: Row[Any], answer: str, by: str, speaker: str, now: float
) -> tuple[list[TurnRef], list[int]]:
    """Start the turn of an offer, if it is taken; return it and the post to send."""
    if answer != TAKE:
        return [], []
    deed = next(option["name"] for option in row.options if option["id"] == TAKE)
    new = {"message_id": f"{OFFER}{row.id}", "context": text_of(row.title, row.subject)}
    ref, post = _begin(connection, row.turn, f"{deed}.", Speaker(speaker, by), new, now)
    mine = (checkout.c.session == row.session) & (checkout.c.branch == row.call)
    connection.execute(update(checkout).where(mine).values(tries=checkout.c.tries + 1))
    return [ref], [post]


def decide_note(connection: Connection, ask: int, *, keep: bool) -> None:
    """Keep the note that an ask is about, or forget it, inside the caller's commit."""
    mine = memory_note.c.ask == ask
    if keep:
        connection.execute(update(memory_note).where(mine).values(state="kept"))
    else:
        connection.execute(delete(memory_note).where(mine))
