"""Writes messages and files into a thread, finds them again, and takes a text out of them.

What Slack cannot render is shown without Markdown and cards, and in the end as bare text. An app
cannot change what others wrote: those messages are named.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from app.clock import Clock
from app.core.files.attachments import PlatformFileRefused
from app.model.keys import SessionKey
from app.model.posts import Cleaned, MadeFile, PostSend, PostSent
from app.model.text import size_words
from app.services.slack import render, wording
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread
from app.services.slack.people import SlackIdentity
from app.services.slack.text import PART_CHARACTERS, escape, link_of
from app.vault import Vault, is_in

logger = logging.getLogger(__name__)


NO_STREAMS: Final = {
    "access_denied",
    "channel_type_not_supported",
    "missing_scope",
    "not_allowed_token_type",
    "unknown_method",
}
"""This app can never stream here."""
NOT_STREAMING: Final = {
    "message_not_in_streaming_state",
    "stopped_by_user",
    "streaming_state_conflict",
}
BAD_FORM: Final = {
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "msg_blocks_too_long",
    "msg_blocks_too_many",
    "msg_too_long",
}
"""Slack cannot render a message as written, for example its tables."""
GONE: Final = {"message_not_found", "cant_update_message", "edit_window_closed", "block_mismatch"}
"""The message cannot be changed any more."""
PLACE_GONE: Final = {
    "channel_not_found",
    "is_archived",
    "is_inactive",
    "not_in_channel",
    "thread_not_found",
}
FOR_GOOD: Final = PLACE_GONE | {
    "account_inactive",
    "ekm_access_denied",
    "invalid_auth",
    "messages_tab_disabled",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "restricted_action",
    "restricted_action_non_threadable_channel",
    "restricted_action_read_only_channel",
    "restricted_action_thread_locked",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
}
"""Slack will say the same again; anything else may pass."""


EVENT_TYPE: Final = "agent_bridge_post"
ANSWER: Final = ".answer"
"""What follows the mark of a message that holds a finished part of the answer."""


@dataclass(slots=True)
class ShownPost:
    """How much of a post Slack shows."""

    ts: str | None = None
    """The message that is being written; None: the next one is not begun yet."""
    start: int = 0
    """Where in the text it begins."""
    is_answer: bool = False
    """Whether it holds a finished part of the answer, not progress."""
    progress: str | None = None
    """The message that shows the progress, once the answer is written below it."""
    progress_start: int = 0
    progress_called_at: float = float("-inf")
    streamed: int | None = None
    """How far the text was streamed into it; None: it is not a stream."""
    began: float = 0.0
    """When that stream began."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The cards that the stream shows."""
    messages: int = 0
    called_at: float = float("-inf")
    unsure: bool = False
    """Whether Slack may have made a message without confirming it."""
    maybe_streaming: bool = False
    """Whether an earlier run of the bridge may have left it as a stream."""
    uploaded: bool = False
    """Whether the rest was sent as a file."""
    is_complete: bool = False
    """Whether all of the answer is there."""
    size: int = PART_CHARACTERS
    """How much text one message takes; less after Slack refused one for its form."""
    can_be_rated: bool = True
    """Whether the answer has the buttons to rate it."""
    refusals: int = 0
    """How often Slack refused the answer for a reason that may pass."""
    post: PostSend | None = None
    """What it shows, as it was sent last."""
    timer: asyncio.Task[None] | None = None
    """Ends the stream in time."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def turn_to_answer(self) -> None:
        """Write the answer into new messages from here on: people are not notified of edits."""
        if self.ts is not None and not self.is_answer:
            self.progress, self.progress_start = self.ts, self.start
            self.progress_called_at, self.ts = self.called_at, None

    def begin_next(self, start: int) -> None:
        """Go on in another message."""
        self.ts, self.start, self.streamed, self.tasks = None, start, None, {}
        self.is_answer = False

    def adopt(self, found: ShownPost) -> None:
        """Take over what was found in the thread."""
        self.ts, self.start, self.is_answer = found.ts, found.start, found.is_answer
        self.progress, self.progress_start = found.progress, found.progress_start
        self.uploaded, self.messages = found.uploaded, found.messages
        self.streamed, self.maybe_streaming = None, True


def metadata(post: PostSend, start: int, *, is_answer: bool = False) -> dict[str, Any]:
    """Mark a message with its post and the offset in the text where it begins."""
    mark = f"{post.marker}.{start}{ANSWER if is_answer else ''}"
    return {"event_type": EVENT_TYPE, "event_payload": {"post": mark}}


async def search(api: SlackApi, target: SessionKey, marker: str) -> ShownPost | None:
    """Find what a thread shows of a post; raises what the API does."""
    channel, thread = channel_and_thread(target.external)
    try:
        messages = await api.marked(channel, thread)
    except SlackRefused as error:
        # If it matters, the next post there fails with it.
        logger.info("%s", error)
        return None
    mark = re.compile(rf"{re.escape(marker)}\.(\d+)({re.escape(ANSWER)})?")
    parts = {True: ShownPost(start=-1), False: ShownPost(start=-1)}
    found = ShownPost(maybe_streaming=True)
    for message in messages:
        marks = mark.findall(orjson.dumps(message).decode())
        if not marks:
            continue
        found.messages += 1
        if message.get("files"):
            found.uploaded = True
            continue
        # The cards of a message keep the mark that they had while it was written.
        start, is_answer = max((int(start), bool(answer)) for start, answer in marks)
        if start >= parts[is_answer].start:
            parts[is_answer] = ShownPost(message["ts"], start, is_answer)
    return _arrange(found, parts[True], parts[False]) if found.messages else None


def _arrange(found: ShownPost, answer: ShownPost, progress: ShownPost) -> ShownPost:
    """Tell the message that is being written from the one that shows the progress."""
    current = answer if answer.start >= progress.start else progress
    found.ts, found.start, found.is_answer = current.ts, max(current.start, 0), current.is_answer
    if current is answer:
        found.progress, found.progress_start = progress.ts, max(progress.start, 0)
    return found


class MessageWriter:
    """The messages of one agent's app."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def put(
        self,
        post: PostSend,
        shown: ShownPost,
        blocks: list[dict[str, Any]],
        *,
        yields: bool = False,
    ) -> None:
        """Show blocks; if Slack cannot render an agent's text, show it verbatim."""
        try:
            await self.put_blocks(post, shown, blocks, yields=yields)
        except SlackRefused as error:
            if error.error not in BAD_FORM:
                raise
            logger.warning("%s; showing the text verbatim", error)
            await self.put_verbatim(post, shown, blocks)

    async def put_verbatim(
        self, post: PostSend, shown: ShownPost, blocks: list[dict[str, Any]]
    ) -> None:
        """Show blocks without Markdown and cards, and if that is refused too, without blocks."""
        verbatim = render.verbatim(blocks)
        try:
            await self.put_blocks(post, shown, verbatim)
        except SlackRefused as error:
            if error.error not in BAD_FORM:
                raise
            await self.put_blocks(post, shown, None, words=render.bare(verbatim))

    async def put_blocks(
        self,
        post: PostSend,
        shown: ShownPost,
        blocks: list[dict[str, Any]] | None,
        *,
        words: str = "",
        yields: bool = False,
    ) -> None:
        """Change the message if there is one, else post it."""
        channel, thread = channel_and_thread(post.target.external)
        content: dict[str, Any] = {
            "text": words or render.summary(post.content),
            "blocks": blocks,
            "metadata": metadata(post, shown.start, is_answer=shown.is_answer),
        }
        if shown.ts is not None:
            try:
                await self._api.call(
                    "chat.update", yields=yields, channel=channel, ts=shown.ts, **content
                )
            except SlackRefused as error:
                if error.error not in GONE:
                    raise
                shown.ts = None
        if shown.ts is None:
            answer = await self._api.call(
                "chat.postMessage",
                channel=channel,
                thread_ts=thread or None,
                unfurl_links=False,
                unfurl_media=False,
                **content,
            )
            shown.ts = answer["ts"]
            shown.messages += 1
        shown.called_at = self._clock.monotonic()


_FILE_ID: Final = "F"
"""Prefix of file ids; the id of a message is a time."""


class Sharer:
    """The files of one agent's app."""

    def __init__(self, api: SlackApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads

    async def send(self, post: PostSend) -> PostSent:
        """Take the next step of sharing files; raises what the API does."""
        sent = [] if post.remote_id is None else post.remote_id.split(",")
        if sent and not sent[0].startswith(_FILE_ID):
            return PostSent(sent[0])  # they are named already
        files = [file for file in post.content.files if file.size]
        empty = [file for file in post.content.files if not file.size]
        try:
            if not files:
                return await self._name(post, empty, wording.NO_EMPTY_FILES)
            if len(sent) < len(files):
                file = files[len(sent)]
                content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
                sent.append(await self._api.put(file.name, content))
                return PostSent(",".join(sent), unfinished=True)
            if not await self._is_shared(sent[0]):
                channel, thread = channel_and_thread(post.target.external)
                titles = {number: file.name for number, file in zip(sent, files, strict=True)}
                names = ", ".join(file.name for file in empty)
                comment = escape(wording.EMPTY_LEFT_OUT.format(names=names)) if empty else None
                await self._api.share(titles, channel=channel, thread=thread, comment=comment)
        except (SlackRefused, PlatformFileRefused, OSError) as error:
            if isinstance(error, SlackRefused) and error.error in PLACE_GONE:
                raise
            logger.warning("cannot share files in %s: %s", post.target, error)
            return await self._name(post, post.content.files, str(error))
        return PostSent(",".join(sent))

    async def _is_shared(self, number: str) -> bool:
        """Ask Slack whether a file is shared: the answer to an earlier call may have been lost."""
        try:
            info = await self._api.read("files.info", file=number)
        except SlackRefused as error:
            logger.info("%s", error)  # it was not shared, or the app may not look at it
            return False
        return bool(info["file"].get("shares"))

    async def _name(self, post: PostSend, files: Sequence[MadeFile], why: str) -> PostSent:
        """List the files, and say why they are not here."""
        channel, thread = channel_and_thread(post.target.external)
        lines = [escape(wording.FILES_NOT_SENT.format(why=why))]
        for file in files:
            name = escape(file.name)
            shown = f"<{file.link}|{name}>" if file.link else name
            lines.append(f"• {shown} ({size_words(file.size)})")
        answer = await self._api.call(
            "chat.postMessage",
            channel=channel,
            thread_ts=thread,
            text="\n".join(lines),
            metadata=metadata(post, 0),
            unfurl_links=False,
            unfurl_media=False,
        )
        return PostSent(answer["ts"])


FILE_BYTES: Final = 32 * 1024 * 1024
"""The largest file that is downloaded to look into it."""
_CONTENT: Final = ("text", "blocks", "attachments", "metadata")

Retry = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def purge(
    api: SlackApi, key: SessionKey, vault: Vault, me: SlackIdentity, retry: Retry
) -> Cleaned:
    """Take what the vault knows out of a thread; raises what the API does."""
    channel, thread = channel_and_thread(key.external)
    changed, left = 0, list[str]()
    for message in await retry(lambda: api.replies(channel, thread, include_all_metadata="true")):
        content = {name: message[name] for name in _CONTENT if name in message}
        clean = vault.redact_json(content)
        files = [file for file in message.get("files") or () if await _holds(api, file, vault)]
        if clean == content and not files:
            continue
        if message.get("bot_id") != me.bot:
            link = link_of(me.home, channel, message["ts"], thread)
            left.append(link or f"{channel}:{message['ts']}")
            continue
        where: dict[str, Any] = {"channel": channel, "ts": message["ts"]}
        for file in files:
            await retry(partial(api.call, "files.delete", file=file["id"]))
        if clean != content:
            await retry(partial(_change, api, where, clean))
        changed += 1
    return Cleaned(changed, tuple(left))


async def _change(api: SlackApi, where: dict[str, Any], content: dict[str, Any]) -> None:
    """Write a message without the text; one that Slack does not take back in this form goes."""
    try:
        await api.call("chat.update", **where, **content)
    except SlackRefused:
        await api.call("chat.delete", **where)


async def _holds(api: SlackApi, file: dict[str, Any], vault: Vault) -> bool:
    if vault.redact_json(file) != file:
        return True
    if file.get("size", 0) > FILE_BYTES:
        return False
    try:
        return is_in(vault, [piece async for piece in api.download(file["id"])])
    except (PlatformFileRefused, SlackRefused):
        return False
