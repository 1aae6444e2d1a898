"""From a button of a check that somebody pressed to an answer or a stop; pure.

GitHub tells only the App whose check it is, and the names of buttons are the App's own: nobody can
press what was not shown. Who pressed is asked about like anybody who speaks.
"""

from __future__ import annotations

import re

from app.core.inbound import Answered, Heard
from app.services.github.envelope import opened
from app.services.github.events import speaker_of
from app.services.github.mentions import Identities
from app.services.github.names import Spot
from app.services.github.naming import NameOf, as_given

BUTTONS: dict[str, tuple[str, ...]] = {"check_run": ("requested_action",)}
"""The events that say that a button was pressed."""

STOP = {"label": "Stop", "description": "Stop what the agent is doing", "identifier": "stop"}

_ANSWER = re.compile(r"ask-([0-9]{1,12})-([0-9]{1,2})")
_OF_PULL = re.compile(r"([0-9]{1,12}):.*")


def answering(ask: int, number: int) -> str:
    """Name the button for one of the options of an ask."""
    return f"ask-{ask}-{number}"


def read(
    event: str,
    body: bytes,
    agent: str,
    us: Identities,
    installation: str | None = None,
    name_of: NameOf = as_given,
) -> Answered | Heard | None:
    """Understand an event; None if no button of this agent was pressed.

    Raises:
        DeliveryUnreadable: it is not what GitHub sends.
    """
    payload = opened(event, body, BUTTONS, installation, name_of)
    if payload is None:
        return None
    run, pressed = payload.check_run, payload.requested_action
    if run is None or pressed is None or payload.sender is None or payload.repository is None:
        return None
    if run.app is None or not us.is_app(run.app.slug, agent):
        return None
    speaker = speaker_of(payload.sender, us)
    if answer := _ANSWER.fullmatch(pressed.identifier):
        return Answered(int(answer[1]), int(answer[2]), speaker)
    place = _OF_PULL.fullmatch(run.external_id or "")
    if pressed.identifier != STOP["identifier"] or place is None:
        return None
    spot = Spot(payload.repository.full_name, int(place[1]))
    return Heard(
        place=spot.place,
        external=str(spot),
        message_id=f"stop-{run.id}-{payload.sender.id}",
        speaker=speaker,
        text="stop",
        spoken="stop",
        mentions=(agent,),
        only_agent_answers=False,
    )
