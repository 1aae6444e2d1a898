"""Reads what a Slack message says, and cuts an agent's text into messages; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.markdown.writing import disarm
from app.model.inbound import Delivery
from app.model.text import reveal_line
from app.model.types import Earlier, File, Speaker
from app.services.slack.wording import SOMEONE

NAME_CHARACTERS: Final = 80
FILE_FOLDER: Final = "slack"
"""Prefix of the folder that a Slack file is stored in; the file's id follows."""
MENTION: Final = re.compile(r"<@([UW][A-Z0-9]+)(?:\|([^>]*))?>")
_CANVASES: Final = frozenset({"application/vnd.slack-docs", "canvas", "docs", "quip"})
"""How Slack names canvases, as media type, kind or mode."""
_GONE_FILES: Final = {"tombstone", "hidden_by_limit"}
_CHANNEL: Final = re.compile(r"<#([CG][A-Z0-9]+)(?:\|([^>]*))?>")
_SPECIAL: Final = re.compile(r"<!([a-z]+)(?:\^[^>|]*)?(?:\|([^>]*))?>")
_LINK: Final = re.compile(r"<((?:https?|mailto)[^>|]*)(?:\|([^>]*))?>")
_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FrameContext:
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
    def of(cls, delivery: Delivery) -> FrameContext:
        """Read it back."""
        headers = delivery.headers
        return cls(orjson.loads(headers.get("agents", "{}")), home=headers.get("home", ""))


def plain(text: str, known: FrameContext) -> str:
    """Write Slack's markup as a person reads it."""

    def name(match: re.Match[str]) -> str:
        user, label = match.groups()
        return f"@{known.agents.get(user) or known.names.get(user) or label or user}"

    def link(match: re.Match[str]) -> str:
        address, label = match.groups()
        bare = address.removeprefix("mailto:")
        return bare if label in {None, "", address, bare} else f"{label} ({bare})"

    text = MENTION.sub(name, text)
    text = _CHANNEL.sub(lambda match: f"#{match.group(2) or match.group(1)}", text)
    text = _SPECIAL.sub(lambda match: match.group(2) or f"@{match.group(1)}", text)
    text = _LINK.sub(link, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def quote_forwarded(message: Event, known: FrameContext) -> str:
    """Write the forwarded messages, which Slack keeps apart from the text."""
    quoted = []
    for each in _find_forwarded(message):
        who = each.get("author_name") or known.names.get(each.get("author_id", ""))
        where = f" in #{each['channel_name']}" if each.get("channel_name") else ""
        quoted.append(f"{who or SOMEONE}{where}: {_card(each, known)}")
    return "\n\n".join(quoted)


def everything_in(message: Event, known: FrameContext) -> str:
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


def said_earlier(message: Event, known: FrameContext) -> Earlier:
    """Read a message of a thread as context."""
    user, bot = message.get("user") or "", message.get("bot_id")
    name = known.names.get(user) or message.get("username") or user or bot or SOMEONE
    return Earlier(
        message_id=message["ts"],
        speaker=Speaker(user or bot or "", str(name), "bot" if bot else "person"),
        text=everything_in(message, known),
        files=files_of(message),
    )


def is_canvas(file: Event) -> bool:
    """Tell whether a file is a canvas, which Slack serves as HTML."""
    kinds = {file.get("mimetype"), file.get("filetype"), file.get("mode")}
    return bool(kinds & _CANVASES)


def _file(file: Event) -> File:
    name, media_type = str(file.get("name") or ""), str(file.get("mimetype") or "")
    if is_canvas(file):
        name, media_type = f"{name or file.get('title') or 'canvas'}.html", "text/html"
    # No folders, no special characters.
    safe = _UNUSABLE.sub("_", name)[-NAME_CHARACTERS:].strip(". ") or "file"
    return File(
        name=name or str(file["id"]),
        media_type=media_type or "application/octet-stream",
        url=f"{FILE_FOLDER}{file['id']}/{safe}",
    )


def file_id(file: File) -> str:
    """Return the Slack id of a file."""
    return file.url.partition("/")[0].removeprefix(FILE_FOLDER)


USER_GROUP: Final = "S"
"""Begins the id of a user group."""


def mention(account: str) -> str:
    """Mention a person or a user group."""
    return f"<!subteam^{account}>" if account.startswith(USER_GROUP) else f"<@{account}>"


def link_of(home: str, channel: str, ts: str, thread: str) -> str:
    """Write the address of a message."""
    if not home:
        return ""
    within = "" if ts == thread else f"?thread_ts={thread}&cid={channel}"
    return f"{home.rstrip('/')}/archives/{channel}/p{ts.replace('.', '')}{within}"


def _find_forwarded(message: Event) -> list[Event]:
    attached = message.get("attachments") or ()
    return [each for each in attached if each.get("is_share") or each.get("is_msg_unfurl")]


def _card(attachment: Event, known: FrameContext) -> str:
    """Write the text of a card that is attached to a message."""
    fields = attachment.get("fields") or ()
    lines = [
        *(str(attachment.get(key) or "") for key in ("pretext", "title", "text")),
        *(f"{field.get('title', '')}: {field.get('value', '')}" for field in fields),
    ]
    words = plain("\n".join(filter(None, lines)), known)
    blocks = attachment.get("blocks") or attachment.get("message_blocks")
    return words or _texts(blocks, known) or plain(str(attachment.get("fallback") or ""), known)


def _texts(blocks: object, known: FrameContext) -> str:
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


PART_CHARACTERS: Final = 10_000
"""Text of one message: Slack ends near 12,000, with everything that the message says."""
LINE_CHARACTERS: Final = 2_000
"""How far back to look for the end of a line, or else of a word, where a text is cut."""
UNFINISHED_CHARACTERS: Final = 600
"""The longest half of a link that is held back."""
RINGING: Final = re.compile(r"<(?=(?:!(?:channel|everyone|group|here|subteam)|@[UWB][A-Z0-9]+)\b)")
_UNFINISHED: Final = re.compile(
    r"<(?:[!@][^>\s]{0,40})?$|!?\[[^\]\n]{0,80}(?:\](?:\([^)\s]{0,500})?)?$|!$"
)
"""Half a mention, or half a link: it may still become false."""
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_HALF_ESCAPED: Final = re.compile(r"&[a-z]{0,3}$")
_ENTITY: Final = re.compile("&(?=(?:amp|lt|gt);)")
_WORD_JOINER: Final = "\u2060"
_WIDEST: Final = 5
"""The most characters that one becomes when it is escaped: `&amp;`."""


def defang(text: str) -> str:
    """Turn text that would notify a channel or a person into plain text."""
    return RINGING.sub(f"<{_WORD_JOINER}", text)


def escape(text: str) -> str:
    """Escape text so that Slack reads no markup in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def literal(text: str) -> str:
    """Keep Slack from reading `&lt;` as `<`."""
    return _ENTITY.sub(r"\\u{26}", text)


def line(text: str, size: int) -> str:
    """Put a title onto one line, to be shown as it is."""
    return literal(defang(reveal_line(text)[:size]))


def weigh(text: str) -> int:
    """Measure a text as Slack stores it: escaped."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def head(escaped: str, size: int) -> str:
    """Take the beginning of escaped text, and never half an entity."""
    cut = escaped[:size]
    return _HALF_ESCAPED.sub("", cut) if len(escaped) > size else cut


def safe_end(text: str) -> int:
    """Tell how much of a text can be shown while more may follow: no half mention or link."""
    begin = max(0, len(text) - UNFINISHED_CHARACTERS)
    match = _UNFINISHED.search(text[begin:])
    return len(text) if match is None else begin + match.start()


def part_end(text: str, start: int, shown: int, size: int) -> int | None:
    """Tell where the message that begins at `start` must end; None if the rest fits.

    Text that is already shown, up to `shown`, stays in it.
    """
    if weigh(text[start:]) <= size:
        return None
    last = start + size
    while (over := weigh(text[start:last]) - size) > 0:
        last -= -(-over // _WIDEST)
    last = max(last, start + 1)
    first = max(shown, last - LINE_CHARACTERS, start + 1)
    gaps = (text.rfind(gap, first, last) for gap in ("\n", " "))
    return max(shown, next((gap + 1 for gap in gaps if gap >= 0), last))


def tail(text: str, start: int, size: int) -> int:
    """Tell where the last part of a text begins that fits into one message."""
    begin = start
    while (over := weigh(text[begin:]) - size) > 0:
        begin += -(-over // _WIDEST)
    gap = text.find("\n", begin, begin + LINE_CHARACTERS) if begin > start else -1
    return gap + 1 if gap >= 0 else begin


def opening(text: str, start: int) -> str:
    """Reopen the code block in which a message begins."""
    fence = _fence_at(text, start)
    return f"{fence}\n" if fence else ""


def closing(text: str, end: int) -> str:
    """Close the code block in which a message ends."""
    fence = _fence_at(text, end)
    if not fence:
        return ""
    marks = fence[: _width(fence)]
    return f"{marks}\n" if text[:end].endswith("\n") else f"\n{marks}\n"


def piece(text: str, start: int, end: int | None) -> str:
    """Cut one message out of a text, complete in itself."""
    cut = text[start:end]
    after = "" if end is None else closing(text, end)
    return defang(disarm(f"{opening(text, start)}{cut}{after}")) if cut else ""


def _width(fence: str) -> int:
    return len(fence) - len(fence.lstrip(fence[0]))


def _fence_at(text: str, end: int) -> str:
    """Return the line that opened the code block in which a text is at `end`, if any."""
    fence = ""
    for match in _FENCE.finditer(text, 0, end):
        marks, rest = match.groups()
        if not fence:
            fence = match.group().strip()
        elif fence.startswith(marks[0] * 3) and not rest.strip() and len(marks) >= _width(fence):
            fence = ""
    return fence
