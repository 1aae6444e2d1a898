"""Lists the events an app received, from its stored deliveries; pure.

Slack shows an app's event subscriptions only to the person who made the app, with their own token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import orjson

from app.model.inbound import Delivery
from app.services.slack.events import MISSED
from app.services.slack.manifest import EVENTS

IN_CHANNELS: Final = ("message.channels", "message.groups")
_MESSAGES: Final = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}


def events_in(deliveries: Iterable[Delivery]) -> list[str]:
    """List the subscriptions that these deliveries prove, in the order of the manifest."""
    found = {_event_of(each) for each in deliveries if not each.delivery_id.startswith(MISSED)}
    return [event for event in EVENTS if event in found]


def lacks_messages(heard: Iterable[str]) -> bool:
    """Tell whether an app gets mentions without their messages, though Slack sends both."""
    return "app_mention" in heard and not set(heard) & set(IN_CHANNELS)


def _event_of(delivery: Delivery) -> str:
    try:
        frame = orjson.loads(delivery.body)
    except orjson.JSONDecodeError:
        return ""
    payload = frame.get("payload") if isinstance(frame, Mapping) else None
    event = payload.get("event") if isinstance(payload, Mapping) else None
    if not isinstance(event, Mapping):
        return ""
    kind = str(event.get("type", ""))
    return _MESSAGES.get(str(event.get("channel_type")), "") if kind == "message" else kind
