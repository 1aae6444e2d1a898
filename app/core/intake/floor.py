"""Decides who answers a message, once for all adapters; pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.model.inbound import Heard, Reason
from app.model.types import PlaceView, Untagged


@dataclass(frozen=True, slots=True)
class Floor:
    """Who answers, and why."""

    agents: tuple[str, ...]
    reason: Reason


def decide(heard: Heard, place: PlaceView, untagged: Untagged) -> Floor:
    """Give the floor: mention, reply, holder, the only agent, then the setting of the place."""
    if heard.speaker.kind == "agent":
        return Floor((), Reason.FROM_AGENT)
    if heard.mentions:
        return Floor(tuple(dict.fromkeys(heard.mentions)), Reason.MENTIONED)
    if heard.reply_to is not None:
        return Floor((heard.reply_to,), Reason.REPLY)
    if not heard.only_agent_answers:
        return Floor((), Reason.NOT_MENTIONED)
    if place.holder is not None:
        return Floor((place.holder,), Reason.HOLDER)
    if len(place.present) == 1:
        return Floor(place.present, Reason.ONLY_AGENT)
    if not place.present:
        return Floor((), Reason.NONE_HERE)
    return _among_several(place, place.listen or untagged)


def _among_several(place: PlaceView, untagged: Untagged) -> Floor:
    match untagged:
        case "all":
            return Floor(place.present, Reason.ALL_LISTEN)
        case "latest" if place.latest in place.present:
            assert place.latest is not None
            return Floor((place.latest,), Reason.LATEST)
        case _:
            return Floor((), Reason.SEVERAL_HERE)
