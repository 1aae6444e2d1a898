"""Decides who answers a message, once for all adapters; pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.inbound import Heard
from app.core.types import PlaceView, Untagged


@dataclass(frozen=True, slots=True)
class Floor:
    """Who answers, and why."""

    agents: tuple[str, ...]
    reason: str


def decide(heard: Heard, place: PlaceView, untagged: Untagged) -> Floor:
    """Give the floor: mention, then reply, then the only agent, then the setting of the place."""
    if heard.speaker.kind == "agent":
        return Floor((), "messages from agents start nothing")
    if heard.mentions:
        return Floor(tuple(dict.fromkeys(heard.mentions)), "mentioned")
    if heard.reply_to is not None:
        return Floor((heard.reply_to,), "a reply to its message")
    if not heard.only_agent_answers:
        return Floor((), "no agent was mentioned")
    if len(place.present) == 1:
        return Floor(place.present, "the only agent here")
    if not place.present:
        return Floor((), "no agent was mentioned and none is here yet")
    return _among_several(place, place.listen or untagged)


def _among_several(place: PlaceView, untagged: Untagged) -> Floor:
    match untagged:
        case "all":
            return Floor(place.present, "every agent here listens")
        case "latest" if place.latest in place.present:
            assert place.latest is not None
            return Floor((place.latest,), "the agent addressed last")
        case _:
            return Floor((), "several agents are here and none was mentioned")
