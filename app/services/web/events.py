"""Converts messages from the page and the API to deliveries and back; pure."""

from __future__ import annotations

from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from app.errors import DeliveryUnreadable
from app.model.inbound import Delivery, Heard, Repeat, WhileBusy
from app.model.keys import PlaceKey, SessionKey, adapter_name
from app.model.types import File, Speaker

SERVICE = "web"


class SaidFile(BaseModel):
    """A file attached to a message; its address is relative to the uploads folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    media_type: str
    url: str


class SaidBefore(BaseModel):
    """The earlier message that is sent again, and the turn that failed with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: int
    turn: int | None = None


class PageMessage(BaseModel):
    """One message in a page thread."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thread: str
    text: str
    speaker_id: str
    speaker_name: str
    mentions: tuple[str, ...] = ()
    files: tuple[SaidFile, ...] = ()
    title: str = ""
    spoken: str | None = None
    """The words after the mentions that the text begins with."""
    repository: str = ""
    """Where the thread that it begins is to work: as in the command `repo`, or empty."""
    repeats: SaidBefore | None = None
    rejects: int | None = None
    """The open ask that these words reject."""
    hands_over: str = ""
    """The agent that the thread belongs to from now on, if it was picked for these words."""
    while_busy: WhileBusy = "steer"
    """Where it goes if the agent works."""


def place_key(thread: str) -> PlaceKey:
    """Return the key of a page thread."""
    return PlaceKey(SERVICE, thread)


def session_key(thread: str, agent: str) -> SessionKey:
    """Return the key of an agent's session in a thread."""
    return SessionKey(SERVICE, thread, agent)


def delivery(said: PageMessage, agent: str, *, now: float, name: str = "") -> Delivery:
    """Make a delivery of a message to one agent.

    Two with the same name are one message, however often it was sent.
    """
    return Delivery(
        adapter=adapter_name(SERVICE, agent),
        delivery_id=name or uuid4().hex,
        signature=None,
        headers={},
        body=said.model_dump_json().encode(),
        received_at=now,
    )


def heard(stored: Delivery) -> Heard:
    """Parse a stored message.

    Raises:
        DeliveryUnreadable: this bridge did not write it.
    """
    try:
        said = PageMessage.model_validate_json(stored.body)
    except ValidationError as error:
        raise DeliveryUnreadable("not a message from the page") from error
    return Heard(
        place=place_key(said.thread),
        external=said.thread,
        message_id=stored.delivery_id,
        speaker=Speaker(said.speaker_id, said.speaker_name),
        text=said.text,
        spoken=said.spoken,
        mentions=said.mentions,
        title=said.title,
        repository=said.repository,
        files=tuple(File(file.name, file.media_type, file.url) for file in said.files),
        repeats=Repeat(said.repeats.message, said.repeats.turn) if said.repeats else None,
        rejects=said.rejects,
        hands_over=said.hands_over,
        while_busy=said.while_busy,
    )
