"""Converts the runs of schedules to deliveries and back; pure.

The id of a run names its schedule and its due time: the inbox takes each of them once.
"""

from __future__ import annotations

import json

from app.core.schedules import wording
from app.errors import DeliveryUnreadable
from app.model.inbound import Decision, Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, PostContent
from app.model.schedules import RUN, Schedule
from app.model.types import Speaker

HEADER = "agent-bridge-schedule"
"""Marks the delivery of a run: no adapter stores a header of this name."""


def run_name(schedule: int, due: float) -> str:
    """Name the run of a schedule at its due time."""
    return f"{RUN}{schedule}:{due:.0f}"


def to_delivery(schedule: Schedule, name: str, *, missed: int, now: float) -> Delivery:
    """Make a run a delivery of its agent's adapter."""
    creator = schedule.creator
    body = {
        "place": schedule.place.name,
        "external": schedule.key.external,
        "words": schedule.words,
        "creator": {"id": creator.id, "name": creator.name, "number": creator.number},
        "rule": f"{schedule.expression} {schedule.zone}",
        "missed": missed,
    }
    return Delivery(
        adapter=schedule.key.adapter,
        delivery_id=name,
        signature=None,
        headers={HEADER: str(schedule.id)},
        body=json.dumps(body).encode(),
        received_at=now,
    )


def parse(delivery: Delivery) -> Heard | None:
    """Read the delivery of a run; None if it is another delivery.

    Raises:
        DeliveryUnreadable: this bridge did not write it.
    """
    number = delivery.headers.get(HEADER)
    if number is None:
        return None
    service, _, agent = delivery.adapter.partition(":")
    try:
        body = json.loads(delivery.body)
        creator = Speaker(**body["creator"])
        said = (int(number), creator.name, body["rule"], body["missed"])
        return Heard(
            place=PlaceKey(service, body["place"]),
            external=body["external"],
            message_id=delivery.delivery_id,
            speaker=creator,
            text=body["words"],
            spoken="",
            mentions=(agent,),
            pointed=wording.pointed(*said),
            schedule=int(number),
            announcement=wording.announcement(*said, words=body["words"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DeliveryUnreadable(f"not a run of a schedule: {error}") from error


def announce(decision: Decision) -> tuple[NewPost, ...]:
    """Show people a message that they did not see said."""
    heard = decision.heard
    if not heard.announcement:
        return ()
    target = SessionKey(heard.place.service, heard.external, heard.mentions[0])
    content = PostContent(kind="notice", note=heard.announcement)
    return (NewPost(f"said:{heard.place}:{heard.message_id}", target, content),)
