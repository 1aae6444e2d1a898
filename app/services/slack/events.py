"""Parses Slack frames into the core's inbound events; pure.

A frame is stored as it arrived. The names and files that it lacks are looked up when its row is
read, and then it is parsed again with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from app.errors import DeliveryUnreadable
from app.model.inbound import Answered, Changed, Delivery, Heard, Inbound, Rated
from app.model.keys import PlaceKey
from app.model.types import Speaker
from app.services.slack.text import (
    MENTION,
    Event,
    FrameContext,
    everything_in,
    files_of,
    link_of,
    plain,
    quote_forwarded,
)
from app.services.slack.wording import HANDLE_MESSAGE, SOMEONE

SERVICE: Final = "slack"
MISSED: Final = "missed:"
"""Prefix of the id of an event that the bridge fetched because it did not arrive."""
TITLE_CHARACTERS: Final = 80

_SAID: Final = {None, "file_share", "thread_broadcast", "me_message", "bot_message"}
"""Subtypes of messages in which someone says something."""
SLACKBOT: Final = "USLACKBOT"
"""Posts reminders and automatic replies, which a guest may have set up."""
SHORTCUT: Final = "ask"
"""The id of the message shortcut in the manifest."""
BARE_COMMANDS: Final = {"stop", "stop all"}
"""Commands that need no `!`: a person who writes one does not want it to be queued."""
_FIRST_MENTION: Final = re.compile(r"\s*<@([UW][A-Z0-9]+)(?:\|[^>]*)?>[\s,:]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """The frame that an event was parsed from, to be parsed again with more names and files."""

    frame: Event
    known: FrameContext


@dataclass(frozen=True, slots=True)
class FrameReader:
    """Parses the frames that one agent's app gets."""

    agent: str
    bots: Collection[str]
    """The bots that may speak to the agent, by id."""
    unseal: Callable[[str], list[Any]]

    def read(self, delivery: Delivery) -> Inbound | None:
        """Parse a delivery; None if it is irrelevant.

        Raises:
            DeliveryUnreadable: it is not a Slack frame.
        """
        try:
            origin = Origin(orjson.loads(delivery.body), FrameContext.of(delivery))
            found = self.interpret(origin.frame, origin.known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeliveryUnreadable(f"unexpected Slack frame: {error!r}") from error
        return replace(found, metadata=origin) if isinstance(found, Heard | Changed) else found

    def interpret(self, frame: Event, known: FrameContext) -> Inbound | None:
        """Parse a frame; None if it is irrelevant."""
        payload = frame["payload"]
        if frame["type"] == "interactive":
            return self._pressed(payload, known)
        return self._event(payload["event"], known) if frame["type"] == "events_api" else None

    def _event(self, event: Event, known: FrameContext) -> Inbound | None:
        match event["type"], event.get("subtype"):
            case "agent_session_stopped", _:  # the native Stop button is the command
                at, channel = event["event_ts"], event["channel"]
                thread = event.get("thread_ts") or at
                return self._command("stop", channel, thread, at, event["user"], known)
            case "message", "message_changed":
                return self._changed(event, known)
            case "message", "message_deleted":
                return self._deleted(event, known)
            case (("message" | "app_mention"), subtype) if subtype in _SAID:
                return self._said(event, known)
            case _:
                return None

    def _said(self, event: Event, known: FrameContext) -> Heard | None:
        speaker = self._speaker(event, known)
        if speaker is None:
            return None
        channel, ts, thread = event["channel"], event["ts"], thread_of(event)
        text = event.get("text") or ""
        mentions = find_mentions(text, known.agents)
        direct = event.get("channel_type") == "im" or is_direct(channel)
        if not mentions and not direct and thread == ts:
            return None  # people talking in a channel, to none of our agents
        spoken = plain(_after_mentions(text, known.agents), known)
        is_bare = " ".join(spoken.lower().split()) in BARE_COMMANDS
        if not (mentions or direct or is_bare or spoken.startswith("!")):
            spoken = ""  # `help` between people is not a command
        return Heard(
            place=place_of(channel, thread),
            external=external(channel, thread),
            message_id=ts,
            speaker=speaker,
            text=plain(text, known),
            spoken=spoken,
            mentions=mentions or ((self.agent,) if direct else ()),
            title=_title(plain(_after_mentions(text, known.agents), known)),
            link=link_of(known.home, channel, ts, thread),
            said_at=float(ts),
            files=files_of(event),
            context=quote_forwarded(event, known),
            overheard=not mentions and not direct,
        )

    def _speaker(self, event: Event, known: FrameContext) -> Speaker | None:
        """Tell who speaks; None for our own agents and for bots that are not allowed."""
        user = event.get("user") or ""
        if user in known.agents:
            return None
        is_bot = event.get("bot_id") or event.get("subtype") == "bot_message" or user == SLACKBOT
        if not is_bot:
            return Speaker(user, known.names.get(user, user)) if user else None
        ids = [str(event[key]) for key in ("bot_id", "app_id", "user") if event.get(key)]
        allowed = next((each for each in ids if each in self.bots), None)
        name = event.get("username") or known.names.get(user) or allowed or ""
        return None if allowed is None else Speaker(allowed, name, "bot")

    def _changed(self, event: Event, known: FrameContext) -> Changed | None:
        now, before = event["message"], event.get("previous_message") or {}
        if now.get("subtype") == "tombstone":
            return self._deleted({**event, "previous_message": before or now}, known)
        # Slack also sends "changed" when it only adds the preview of a link.
        if now.get("text") == before.get("text"):
            return None
        return self._change(event, now, known, plain(now.get("text") or "", known))

    def _deleted(self, event: Event, known: FrameContext) -> Changed | None:
        before = event.get("previous_message")
        return None if before is None else self._change(event, before, known, None)

    def _change(
        self, event: Event, message: Event, known: FrameContext, text: str | None
    ) -> Changed | None:
        speaker = self._speaker(message, known)
        if speaker is None:
            return None
        channel, thread = event["channel"], thread_of(message)
        return Changed(
            place=place_of(channel, thread),
            external=external(channel, thread),
            message_id=message["ts"],
            speaker=speaker,
            text=text,
        )

    def _pressed(self, payload: Event, known: FrameContext) -> Inbound | None:
        """Parse a button or a choice: the answer to an ask, a verdict, or a command."""
        if is_shortcut(payload):
            return self._asked_about(payload, known)
        if payload["type"] != "block_actions":
            return None
        action, user = payload["actions"][0], payload["user"]["id"]
        picked = action.get("selected_option")
        match self.unseal(str(action["action_id"] if picked else action.get("value", ""))):
            case ["ask", int(ask), str(option)]:
                return Answered(ask, option, Speaker(user, known.names.get(user, user)))
            case ["choice", int(ask)] if picked:
                option = str(picked["value"])
                return Answered(ask, option, Speaker(user, known.names.get(user, user)))
            case ["rate", str(marker), "good" | "bad" as verdict]:
                channel, thread = payload["channel"]["id"], thread_of(payload["message"])
                return Rated(
                    place=place_of(channel, thread),
                    external=external(channel, thread),
                    marker=marker,
                    is_good=verdict == "good",
                    speaker=Speaker(user, known.names.get(user, user)),
                )
            case ["command", str(words)]:
                message = payload["message"]
                channel, at = payload["channel"]["id"], action["action_ts"]
                return self._command(words, channel, thread_of(message), at, user, known)
            case _:
                return None

    def _asked_about(self, payload: Event, known: FrameContext) -> Heard:
        """Treat the message shortcut as a request in the thread of the message."""
        message, channel, user = payload["message"], payload["channel"]["id"], payload["user"]["id"]
        thread, author = thread_of(message), message.get("user") or ""
        words = everything_in(message, known)
        name = known.agents.get(author) or known.names.get(author) or author or SOMEONE
        return Heard(
            place=place_of(channel, thread),
            external=external(channel, thread),
            message_id=payload["action_ts"],
            speaker=Speaker(user, known.names.get(user, user)),
            text=HANDLE_MESSAGE,
            spoken=HANDLE_MESSAGE,
            mentions=(self.agent,),
            title=_title(words) or HANDLE_MESSAGE,
            link=link_of(known.home, channel, message["ts"], thread),
            files=files_of(message),
            context=f"{name}: {words}",
            pressed=True,
        )

    def _command(
        self, words: str, channel: str, thread: str, at: str, user: str, known: FrameContext
    ) -> Heard:
        return Heard(
            place=place_of(channel, thread),
            external=external(channel, thread),
            message_id=at,
            speaker=Speaker(user, known.names.get(user, user)),
            text=words,
            spoken=words,
            mentions=(self.agent,),
            pressed=True,
        )


def is_shortcut(payload: Event) -> bool:
    """Tell whether a person used the message shortcut."""
    return payload.get("type") == "message_action" and payload.get("callback_id") == SHORTCUT


def place_of(channel: str, thread: str) -> PlaceKey:
    """Return the key of a thread."""
    return PlaceKey(SERVICE, external(channel, thread))


def external(channel: str, thread: str) -> str:
    """Return the external id of a thread."""
    return f"{channel}:{thread}"


def channel_and_thread(name: str) -> tuple[str, str]:
    """Split the external id of a thread."""
    channel, _, thread = name.partition(":")
    return channel, thread


def is_direct(channel: str) -> bool:
    """Tell whether a channel is a direct message between one person and one app."""
    return channel.startswith("D")


def is_person(name: str) -> bool:
    """Tell whether an id belongs to a person, not to a bot or to another service."""
    return name[:1] in {"U", "W"}


def thread_of(message: Event) -> str:
    """Return the thread of a message: its own, if it begins one."""
    return str(message.get("thread_ts") or message["ts"])


def speaker_of(frame: Event) -> str:
    """Return the id of the user behind a frame; empty if there is none."""
    payload = frame.get("payload") or {}
    user = (payload.get("user") or {}).get("id") or _message_of(payload).get("user")
    return str(user or "")


def _message_of(payload: Event) -> Event:
    event: Event = payload.get("event") or {}
    if is_shortcut(payload):
        event = payload
    return event.get("message") or event.get("previous_message") or event


def users_in(frame: Event) -> tuple[str, ...]:
    """List the users whose names are needed to parse a frame, the speaker first."""
    message = _message_of(frame.get("payload") or {})
    named = [found.group(1) for found in MENTION.finditer(message.get("text") or "")]
    users = [speaker_of(frame), message.get("user") or "", *named]
    return tuple(dict.fromkeys(filter(None, users)))


def find_mentions(text: str, agents: Mapping[str, str]) -> tuple[str, ...]:
    """List the agents that a text mentions, in order."""
    found = (agents.get(match.group(1)) for match in MENTION.finditer(text))
    return tuple(dict.fromkeys(agent for agent in found if agent is not None))


def _after_mentions(text: str, agents: Mapping[str, str]) -> str:
    """Remove the mentions of agents that a text begins with."""
    while (match := _FIRST_MENTION.match(text)) is not None and match.group(1) in agents:
        text = text[match.end() :]
    return text


def _title(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:TITLE_CHARACTERS]
