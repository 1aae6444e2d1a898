"""Reads messages and answers out of webhook bodies; pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from app.errors import DeliveryUnreadable
from app.model.inbound import Answered, Delivery, Heard
from app.model.keys import PlaceKey
from app.model.types import Speaker
from echo_service.settings import NAME

Word = Annotated[str, Field(min_length=1, max_length=200)]


class Person(BaseModel):
    """Who speaks, as the sender knows them."""

    model_config = ConfigDict(frozen=True)

    id: Word
    name: Word


class Message(BaseModel):
    """Something said in a place."""

    model_config = ConfigDict(frozen=True)

    type: Literal["message"]
    place: Word
    id: Word
    speaker: Person
    text: str


class Answer(BaseModel):
    """The answer to an ask: the id of an option, or words where those are welcome."""

    model_config = ConfigDict(frozen=True)

    type: Literal["answer"]
    ask: int
    option: str
    speaker: Person


_EVENT: TypeAdapter[Message | Answer] = TypeAdapter(
    Annotated[Message | Answer, Field(discriminator="type")]
)


def read(delivery: Delivery, agent: str) -> Heard | Answered:
    """Understand a delivery to one agent.

    Raises:
        DeliveryUnreadable: it has another form.
    """
    try:
        event = _EVENT.validate_json(delivery.body)
    except ValidationError as error:
        raise DeliveryUnreadable(f"this is neither a message nor an answer: {error}") from error
    speaker = Speaker(event.speaker.id, event.speaker.name)
    if isinstance(event, Answer):
        return Answered(event.ask, event.option, speaker)
    return Heard(
        place=PlaceKey(NAME, event.place),
        external=event.place,
        message_id=event.id,
        speaker=speaker,
        text=event.text,
        mentions=(agent,),
    )
