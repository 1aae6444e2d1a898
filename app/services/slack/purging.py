"""Takes a text out of a Slack thread: out of the agent's own messages and files.

An app cannot change what others wrote: those messages are named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from app.core.files.download import FileRefused
from app.model.keys import SessionKey
from app.model.posts import Cleaned
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.auth import Identity
from app.services.slack.events import channel_and_thread
from app.services.slack.messages import link_of
from app.vault import Vault
from app.vault.octets import is_in

FILE_BYTES: Final = 32 * 1024 * 1024
"""The largest file that is downloaded to look into it."""
_CONTENT: Final = ("text", "blocks", "attachments", "metadata")

Retry = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def purge(
    api: SlackApi, key: SessionKey, vault: Vault, me: Identity, retry: Retry
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
    except (FileRefused, SlackRefused):
        return False
