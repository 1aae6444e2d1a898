"""Parses Slack frames into the core's inbound events; pure.

A frame is stored as it arrived. The names and files that it lacks are looked up when its row is
read, and then it is parsed again with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from app.core.inbound import Answered, Changed, Delivery, Heard, Inbound
from app.core.keys import PlaceKey
from app.core.types import File, Speaker
from app.errors import DeliveryUnreadable

SERVICE: Final = "slack"
MISSED: Final = "missed:"
"""Prefix of the id of an event that the bridge fetched because it did not arrive."""
TITLE_CHARACTERS: Final = 80
NAME_CHARACTERS: Final = 80
FILE_FOLDER: Final = "slack"
"""Prefix of the folder that a Slack file is stored in; the file's id follows."""

_SAID: Final = {None, "file_share", "thread_broadcast", "me_message", "bot_message"}
"""Subtypes of messages in which someone says something."""
SLACKBOT: Final = "USLACKBOT"
"""Posts reminders and automatic replies, which a guest may have set up."""
BARE_COMMANDS: Final = {"stop", "stop all"}
"""Commands that need no `!`: a person who writes one does not want it to be queued."""
_CANVASES: Final = frozenset({"application/vnd.slack-docs", "canvas", "docs", "quip"})
"""How Slack names canvases, as media type, kind or mode."""
_GONE_FILES: Final = {"tombstone", "hidden_by_limit"}
_MENTION: Final = re.compile(r"<@([UW][A-Z0-9]+)(?:\|([^>]*))?>")
_FIRST_MENTION: Final = re.compile(r"\s*<@([UW][A-Z0-9]+)(?:\|[^>]*)?>[\s,:]*")
_CHANNEL: Final = re.compile(r"<#([CG][A-Z0-9]+)(?:\|([^>]*))?>")
_SPECIAL: Final = re.compile(r"<!([a-z]+)(?:\^[^>|]*)?(?:\|([^>]*))?>")
_LINK: Final = re.compile(r"<((?:https?|mailto)[^>|]*)(?:\|([^>]*))?>")
_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Known:
    """What is needed to parse a frame and is not part of it."""

    agents: Mapping[str, str] = field(default_factory=dict)
    """The agents, by the ids that people mention."""
    names: Mapping[str, str] = field(default_factory=dict)
    """People's names, by id."""
    home: str = ""
    """The address of the workspace."""

    def headers(self) -> dict[str, str]:
        """Write what is known without a call to Slack as headers of a delivery."""
        return {"agents": orjson.dumps(dict(self.agents)).decode(), "home": self.home}

    @classmethod
    def of(cls, delivery: Delivery) -> Known:
        """Read it back."""
        headers = delivery.headers
        return cls(orjson.loads(headers.get("agents", "{}")), home=headers.get("home", ""))


@dataclass(frozen=True, slots=True)
class Origin:
    """The frame that an event was parsed from, to be parsed again with more names and files."""

    frame: Event
    known: Known


@dataclass(frozen=True, slots=True)
class Reader:
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
            origin = Origin(orjson.loads(delivery.body), Known.of(delivery))
            found = self.interpret(origin.frame, origin.known)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeliveryUnreadable(f"unexpected Slack frame: {error!r}") from error
        return replace(found, metadata=origin) if isinstance(found, Heard | Changed) else found

    def interpret(self, frame: Event, known: Known) -> Inbound | None:
        """Parse a frame; None if it is irrelevant."""
        payload = frame["payload"]
        if frame["type"] == "interactive":
            return self._pressed(payload, known)
        return self._event(payload["event"], known) if frame["type"] == "events_api" else None

    def _event(self, event: Event, known: Known) -> Inbound | None:
        match event["type"], event.get("subtype"):
            case "agent_session_stopped", _:
                return self._stopped(event, known)
            case "message", "message_changed":
                return self._changed(event, known)
            case "message", "message_deleted":
                return self._deleted(event, known)
            case (("message" | "app_mention"), subtype) if subtype in _SAID:
                return self._said(event, known)
            case _:
                return None

    def _said(self, event: Event, known: Known) -> Heard | None:
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
        if not mentions and not direct and not _is_command(spoken):
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
            files=files_of(event),
            context=quote_forwarded(event, known),
            overheard=not mentions and not direct,
        )

    def _speaker(self, event: Event, known: Known) -> Speaker | None:
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

    def _changed(self, event: Event, known: Known) -> Changed | None:
        now, before = event["message"], event.get("previous_message") or {}
        if now.get("subtype") == "tombstone":
            return self._deleted({**event, "previous_message": before or now}, known)
        # Slack also sends "changed" when it only adds the preview of a link.
        if now.get("text") == before.get("text"):
            return None
        return self._change(event, now, known, plain(now.get("text") or "", known))

    def _deleted(self, event: Event, known: Known) -> Changed | None:
        before = event.get("previous_message")
        return None if before is None else self._change(event, before, known, None)

    def _change(
        self, event: Event, message: Event, known: Known, text: str | None
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

    def _stopped(self, event: Event, known: Known) -> Heard:
        """Treat the native Stop button as the command."""
        thread = event.get("thread_ts") or event["event_ts"]
        return self._command(
            "stop", event["channel"], thread, event["event_ts"], event["user"], known
        )

    def _pressed(self, payload: Event, known: Known) -> Inbound | None:
        """Parse a button or a choice: the answer to an ask, or a command."""
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
            case ["command", str(words)]:
                message = payload["message"]
                channel, at = payload["channel"]["id"], action["action_ts"]
                return self._command(words, channel, thread_of(message), at, user, known)
            case _:
                return None

    def _command(
        self, words: str, channel: str, thread: str, at: str, user: str, known: Known
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
    return event.get("message") or event.get("previous_message") or event


def users_in(frame: Event) -> tuple[str, ...]:
    """List the users whose names are needed to parse a frame, the speaker first."""
    speaker = speaker_of(frame)
    text = _message_of(frame.get("payload") or {}).get("text") or ""
    if "<@" not in text:
        return (speaker,) if speaker else ()
    named = [found.group(1) for found in _MENTION.finditer(text)]
    return tuple(dict.fromkeys(filter(None, [speaker, *named])))


def find_mentions(text: str, agents: Mapping[str, str]) -> tuple[str, ...]:
    """List the agents that a text mentions, in order."""
    found = (agents.get(match.group(1)) for match in _MENTION.finditer(text))
    return tuple(dict.fromkeys(agent for agent in found if agent is not None))


def plain(text: str, known: Known) -> str:
    """Write Slack's markup as a person reads it."""

    def name(match: re.Match[str]) -> str:
        user, label = match.groups()
        return f"@{known.agents.get(user) or known.names.get(user) or label or user}"

    def link(match: re.Match[str]) -> str:
        address, label = match.groups()
        bare = address.removeprefix("mailto:")
        return bare if label in {None, "", address, bare} else f"{label} ({bare})"

    text = _MENTION.sub(name, text)
    text = _CHANNEL.sub(lambda match: f"#{match.group(2) or match.group(1)}", text)
    text = _SPECIAL.sub(lambda match: match.group(2) or f"@{match.group(1)}", text)
    text = _LINK.sub(link, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def quote_forwarded(message: Event, known: Known) -> str:
    """Write the forwarded messages, which Slack keeps apart from the text."""
    return "\n\n".join(_quote(each, known) for each in _find_forwarded(message))


def everything_in(message: Event, known: Known) -> str:
    """Write everything a reader sees in a message: many bots post only cards."""
    text = plain(message.get("text") or "", known)
    if not message.get("bot_id"):
        return "\n".join(filter(None, (text, quote_forwarded(message, known))))
    cards = (_card(each, known) for each in message.get("attachments") or ())
    blocks = "" if text else _texts(message.get("blocks"), known)
    return "\n".join(filter(None, (text, blocks, *cards)))


def files_of(message: Event) -> tuple[File, ...]:
    """List the files of a message, forwarded ones too, each with its path in the uploads."""
    lists = (message, *_find_forwarded(message))
    return tuple(
        _file(file)
        for each in lists
        for file in each.get("files") or ()
        if str(file.get("id", "")).isalnum() and file.get("mode") not in _GONE_FILES
    )


def is_canvas(file: Event) -> bool:
    """Tell whether a file is a canvas, which Slack serves as HTML."""
    kinds = {file.get("mimetype"), file.get("filetype"), file.get("mode")}
    return bool(kinds & _CANVASES)


def _file(file: Event) -> File:
    name, media_type = str(file.get("name") or ""), str(file.get("mimetype") or "")
    if is_canvas(file):
        name, media_type = f"{name or file.get('title') or 'canvas'}.html", "text/html"
    return File(
        name=name or str(file["id"]),
        media_type=media_type or "application/octet-stream",
        url=f"{FILE_FOLDER}{file['id']}/{_safe(name)}",
    )


def file_id(file: File) -> str:
    """Return the Slack id of a file."""
    return file.url.partition("/")[0].removeprefix(FILE_FOLDER)


def link_of(home: str, channel: str, ts: str, thread: str) -> str:
    """Write the address of a message."""
    if not home:
        return ""
    within = "" if ts == thread else f"?thread_ts={thread}&cid={channel}"
    return f"{home.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}{within}"


def _find_forwarded(message: Event) -> list[Event]:
    attached = message.get("attachments") or ()
    return [each for each in attached if each.get("is_share") or each.get("is_msg_unfurl")]


def _quote(attachment: Event, known: Known) -> str:
    who = attachment.get("author_name") or known.names.get(attachment.get("author_id", ""))
    channel = attachment.get("channel_name")
    where = f" in #{channel}" if channel else ""
    return f"{who or 'someone'}{where}: {_card(attachment, known)}"


def _card(attachment: Event, known: Known) -> str:
    """Write the text of a card that is attached to a message."""
    fields = attachment.get("fields") or ()
    lines = [
        *(str(attachment.get(key) or "") for key in ("pretext", "title", "text")),
        *(f"{field.get('title', '')}: {field.get('value', '')}" for field in fields),
    ]
    words = plain("\n".join(filter(None, lines)), known)
    blocks = attachment.get("blocks") or attachment.get("message_blocks")
    return words or _texts(blocks, known) or plain(str(attachment.get("fallback") or ""), known)


def _texts(blocks: object, known: Known) -> str:
    """Write all text in blocks of any kind."""
    found: list[str] = []
    waiting = [blocks]
    while waiting:
        match waiting.pop(0):
            case list() as several:
                waiting[:0] = several
            case {**parts}:
                if isinstance(text := parts.get("text"), str):
                    found.append(text)
                waiting[:0] = [part for part in parts.values() if isinstance(part, dict | list)]
            case _:
                pass
    return plain("\n".join(found), known)


def _is_command(spoken: str) -> bool:
    return spoken.startswith("!") or " ".join(spoken.lower().split()) in BARE_COMMANDS


def _after_mentions(text: str, agents: Mapping[str, str]) -> str:
    """Remove the mentions of agents that a text begins with."""
    while (match := _FIRST_MENTION.match(text)) is not None and match.group(1) in agents:
        text = text[match.end() :]
    return text


def _title(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:TITLE_CHARACTERS]


def _safe(name: str) -> str:
    """Make a file name safe: no folders, no special characters."""
    return _UNUSABLE.sub("_", name)[-NAME_CHARACTERS:].strip(". ") or "file"
