"""What Slack sends, as the core understands it: frames in, things heard out; pure.

Whatever must be asked of Slack to understand a frame was asked before it was kept, and is kept with
it: a frame means the same whenever it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.core.inbound import Answered, Changed, Delivery, Heard, Inbound
from app.core.keys import PlaceKey
from app.core.types import File, Speaker
from app.errors import DeliveryUnreadable

SERVICE: Final = "slack"
MISSED: Final = "missed:"
"""Begins the id of an event that the bridge fetched itself, since nobody told it of it."""
TITLE_CHARACTERS: Final = 80
NAME_CHARACTERS: Final = 80
FILE_FOLDER: Final = "slack"
"""Begins the name of the folder that a file of Slack is kept in; its id follows."""

_SAID: Final = {None, "file_share", "thread_broadcast", "me_message", "bot_message"}
"""The kinds of message in which somebody says something."""
SLACKBOT: Final = "USLACKBOT"
"""Who speaks for whoever set a reminder or an automatic reply: it may have been a guest."""
BARE_COMMANDS: Final = {"stop", "stop all"}
"""What is a command without a sign as well: nobody who says it wants it to wait for its turn."""
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
    """What was known when a frame arrived."""

    agents: Mapping[str, str] = field(default_factory=dict)
    """The agents, by the ids that people mention."""
    names: Mapping[str, str] = field(default_factory=dict)
    """People's names, by id."""
    home: str = ""
    """The address of the workspace."""

    def headers(self) -> dict[str, str]:
        """Write it into a delivery."""
        return {
            "agents": orjson.dumps(dict(self.agents)).decode(),
            "names": orjson.dumps(dict(self.names)).decode(),
            "home": self.home,
        }

    @classmethod
    def of(cls, delivery: Delivery) -> Known:
        """Read it back."""
        headers = delivery.headers
        return cls(
            orjson.loads(headers.get("agents", "{}")),
            orjson.loads(headers.get("names", "{}")),
            headers.get("home", ""),
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the frames that one agent's app gets."""

    agent: str
    bots: Collection[str]
    """The bots that may speak to the agent, by id."""
    unseal: Callable[[str], list[Any]]

    def read(self, delivery: Delivery) -> Inbound | None:
        """Understand a delivery; None if it is of no concern.

        Raises:
            DeliveryUnreadable: it makes no sense.
        """
        try:
            frame = orjson.loads(delivery.body)
            payload = frame["payload"]
            known = Known.of(delivery)
            if frame["type"] == "interactive":
                return self._pressed(payload, known)
            return self._event(payload["event"], known) if frame["type"] == "events_api" else None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeliveryUnreadable(f"this frame of Slack makes no sense: {error!r}") from error

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
        mentions = mentioned(text, known.agents)
        direct = event.get("channel_type") == "im" or is_direct(channel)
        if not mentions and not direct and thread == ts:
            return None  # people talking in a channel, to nobody of ours
        spoken = plain(_after_mentions(text, known.agents), known)
        if not mentions and not direct and not _is_command(spoken):
            spoken = ""  # `help` among people is a cry, not a command
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
            context=passed_on(event, known),
            overheard=not mentions and not direct,
        )

    def _speaker(self, event: Event, known: Known) -> Speaker | None:
        """Tell who speaks; None for our own agents and for bots that nobody allowed."""
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
        # Slack says "changed" too when it only adds the preview of a link.
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
        """Understand the native Stop button as the command."""
        thread = event.get("thread_ts") or event["event_ts"]
        return self._command(
            "stop", event["channel"], thread, event["event_ts"], event["user"], known
        )

    def _pressed(self, payload: Event, known: Known) -> Inbound | None:
        """Understand a button or a choice: the answer to an ask, or a command."""
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
    """Name a thread."""
    return PlaceKey(SERVICE, external(channel, thread))


def external(channel: str, thread: str) -> str:
    """Name a thread as keys do."""
    return f"{channel}:{thread}"


def channel_and_thread(name: str) -> tuple[str, str]:
    """Take the name of a thread apart."""
    channel, _, thread = name.partition(":")
    return channel, thread


def is_direct(channel: str) -> bool:
    """Tell whether a channel is one person's with one app."""
    return channel.startswith("D")


def is_person(name: str) -> bool:
    """Tell whether an id is a person's, and no bot's or that of somebody elsewhere."""
    return name[:1] in {"U", "W"}


def thread_of(message: Event) -> str:
    """Tell which thread a message belongs to: its own, if it begins one."""
    return str(message.get("thread_ts") or message["ts"])


def speaker_of(frame: Event) -> str:
    """Tell who said or did what a frame is about, by id; empty if nobody did."""
    payload = frame.get("payload") or {}
    user = (payload.get("user") or {}).get("id") or _message_of(payload).get("user")
    return str(user or "")


def _message_of(payload: Event) -> Event:
    event: Event = payload.get("event") or {}
    return event.get("message") or event.get("previous_message") or event


def thread_in(frame: Event) -> str:
    """Name the thread that a frame is about."""
    payload = frame.get("payload") or {}
    if payload.get("event"):
        channel, message = payload["event"].get("channel"), _message_of(payload)
    else:
        channel, message = (payload.get("channel") or {}).get("id"), payload.get("message") or {}
    return external(str(channel), str(message.get("thread_ts") or message.get("ts")))


def users_in(frame: Event) -> tuple[str, ...]:
    """List everybody whose name is needed to understand a frame, the speaker first."""
    speaker = speaker_of(frame)
    text = _message_of(frame.get("payload") or {}).get("text") or ""
    if "<@" not in text:
        return (speaker,) if speaker else ()
    named = [found.group(1) for found in _MENTION.finditer(text)]
    return tuple(dict.fromkeys(filter(None, [speaker, *named])))


def mentioned(text: str, agents: Mapping[str, str]) -> tuple[str, ...]:
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


def passed_on(message: Event, known: Known) -> str:
    """Write the messages that somebody forwarded: Slack keeps them beside the words."""
    return "\n\n".join(_quoted(each, known) for each in _forwarded(message))


def everything_in(message: Event, known: Known) -> str:
    """Write what a message says to whoever looks at it: many a bot has no words but in cards."""
    text = plain(message.get("text") or "", known)
    if not message.get("bot_id"):
        return "\n".join(filter(None, (text, passed_on(message, known))))
    cards = (_card(each, known) for each in message.get("attachments") or ())
    blocks = "" if text else _texts(message.get("blocks"), known)
    return "\n".join(filter(None, (text, blocks, *cards)))


def files_of(message: Event) -> tuple[File, ...]:
    """List the files of a message, forwarded ones too, each by where it will be kept."""
    lists = (message, *_forwarded(message))
    return tuple(
        File(
            name=str(file.get("name") or file["id"]),
            media_type=str(file.get("mimetype") or "application/octet-stream"),
            url=f"{FILE_FOLDER}{file['id']}/{_safe(str(file.get('name') or ''))}",
        )
        for each in lists
        for file in each.get("files") or ()
        if str(file.get("id", "")).isalnum() and file.get("mode") not in _GONE_FILES
    )


def file_id(file: File) -> str:
    """Tell which file of Slack this is."""
    return file.url.partition("/")[0].removeprefix(FILE_FOLDER)


def link_of(home: str, channel: str, ts: str, thread: str) -> str:
    """Write the address of a message."""
    if not home:
        return ""
    within = "" if ts == thread else f"?thread_ts={thread}&cid={channel}"
    return f"{home.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}{within}"


def _forwarded(message: Event) -> list[Event]:
    attached = message.get("attachments") or ()
    return [each for each in attached if each.get("is_share") or each.get("is_msg_unfurl")]


def _quoted(attachment: Event, known: Known) -> str:
    who = attachment.get("author_name") or known.names.get(attachment.get("author_id", ""))
    channel = attachment.get("channel_name")
    where = f" in #{channel}" if channel else ""
    return f"{who or 'somebody'}{where}: {_card(attachment, known)}"


def _card(attachment: Event, known: Known) -> str:
    """Write what stands on a card that is fixed to a message."""
    fields = attachment.get("fields") or ()
    lines = [
        *(str(attachment.get(key) or "") for key in ("pretext", "title", "text")),
        *(f"{field.get('title', '')}: {field.get('value', '')}" for field in fields),
    ]
    words = plain("\n".join(filter(None, lines)), known)
    blocks = attachment.get("blocks") or attachment.get("message_blocks")
    return words or _texts(blocks, known) or plain(str(attachment.get("fallback") or ""), known)


def _texts(blocks: object, known: Known) -> str:
    """Write all words in blocks, whatever their kinds."""
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
    """Take away the mentions of agents that a text begins with."""
    while (match := _FIRST_MENTION.match(text)) is not None and match.group(1) in agents:
        text = text[match.end() :]
    return text


def _title(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first[:TITLE_CHARACTERS]


def _safe(name: str) -> str:
    """Make a name of a file that is nothing but a name."""
    return _UNUSABLE.sub("_", name)[-NAME_CHARACTERS:].strip(". ") or "file"
