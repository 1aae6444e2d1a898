"""Slack: one app per agent, over Socket Mode."""

from __future__ import annotations

from app.config import IdForm
from app.model.keys import PlaceKey
from app.services.service import Service, later
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings


def area(place: PlaceKey) -> PlaceKey | None:
    """Return the channel of a thread."""
    channel, _, thread = place.name.partition(":")
    return PlaceKey(NAME, channel) if thread else None


SERVICE = Service(
    name=NAME,
    label="Slack",
    credentials=SlackCredentials,
    settings=SlackSettings,
    people=IdForm(r"[UW][A-Z0-9]+", "U024BE7LH"),
    bots=IdForm(r"[UBA][A-Z0-9]+", "B024BE7LH"),
    area=area,
    build=later(f"{__name__}.adapter:build"),
    checks=later(f"{__name__}.doctor:checks"),
    manifest=later(f"{__name__}.manifest:show"),
    set_up=later(f"{__name__}.manifest:set_up"),
    live=later(f"{__name__}.doctor:live"),
)
