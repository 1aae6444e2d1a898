"""What is said on the page or over the API, as it is kept in the inbox; pure."""

from __future__ import annotations

from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from app.core.inbound import Delivery, Heard
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.types import File, Speaker
from app.errors import DeliveryUnreadable

SERVICE = "web"


class SaidFile(BaseModel):
    """A file that came with a message; its address is below the folder of uploads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    media_type: str
    url: str


class Said(BaseModel):
    """One message in a thread of the page."""

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


def place_key(thread: str) -> PlaceKey:
    """Name a thread of the page."""
    return PlaceKey(SERVICE, thread)


def session_key(thread: str, agent: str) -> SessionKey:
    """Name an agent's session in a thread."""
    return SessionKey(SERVICE, thread, agent)


def delivery(said: Said, agent: str, *, now: float) -> Delivery:
    """Make a delivery of a message, heard by one agent; every call is a message of its own."""
    return Delivery(
        adapter=adapter_name(SERVICE, agent),
        delivery_id=uuid4().hex,
        signature=None,
        headers={},
        body=said.model_dump_json().encode(),
        received_at=now,
    )


def heard(stored: Delivery) -> Heard:
    """Read a message back.

    Raises:
        DeliveryUnreadable: it was not written by this bridge.
    """
    try:
        said = Said.model_validate_json(stored.body)
    except ValidationError as error:
        raise DeliveryUnreadable("this is no message of the page") from error
    return Heard(
        place=place_key(said.thread),
        external=said.thread,
        message_id=stored.delivery_id,
        speaker=Speaker(said.speaker_id, said.speaker_name),
        text=said.text,
        spoken=said.spoken,
        mentions=said.mentions,
        title=said.title,
        files=tuple(File(file.name, file.media_type, file.url) for file in said.files),
    )
