"""Asks Slack about the message that a permalink leads to, and why the app may not have got it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from app.model.outcomes import Obstacle, Sighting
from app.services.slack import events
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.people import NOT_THERE

_PATH: Final = re.compile(r"/archives/([CDG][A-Z0-9]+)/p([0-9]{10})([0-9]{6})")
_GONE: Final = {"thread_not_found", "message_not_found"}


def parse_link(link: str) -> tuple[str, str, str] | None:
    """Read channel, message and thread out of a permalink; None if it is none."""
    address = urlsplit(link)
    found = _PATH.fullmatch(address.path.rstrip("/"))
    if found is None or not address.netloc:
        return None
    channel, ts = found[1], f"{found[2]}.{found[3]}"
    return channel, ts, parse_qs(address.query).get("thread_ts", [ts])[0]


async def look_up(api: SlackApi, link: str, agents: Mapping[str, str]) -> Sighting | None:
    """Say what Slack tells about a message; None if the link is not one of Slack's.

    `agents` are our agents by their user ids. Raises what the API does.
    """
    named = parse_link(link)
    if named is None:
        return None
    channel, ts, thread = named
    place = events.place_of(channel, thread)

    def seen(obstacle: Obstacle | None, about: str = "") -> Sighting:
        return Sighting(place, ts, float(ts), obstacle, about)

    query: dict[str, Any] = {"oldest": ts, "latest": ts, "inclusive": "true"}
    try:
        found = await api.read("conversations.replies", channel=channel, ts=thread, **query)
    except SlackRefused as error:
        if error.error in NOT_THERE:
            return seen(Obstacle.ABSENT, channel)
        if error.error == "missing_scope":
            return seen(Obstacle.NOT_SUBSCRIBED, channel)
        return seen(Obstacle.GONE if error.error in _GONE else Obstacle.UNKNOWN, error.error)
    message = next((each for each in found["messages"] if each.get("ts") == ts), None)
    if message is None:
        return seen(Obstacle.GONE)
    if message.get("bot_id"):
        return seen(Obstacle.BY_BOT)
    is_reply = thread != ts or events.is_direct(channel)
    if not is_reply and not events.find_mentions(message.get("text") or "", agents):
        return seen(Obstacle.UNMENTIONED)
    return seen(None)
