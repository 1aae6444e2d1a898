"""The methods of Slack's Web API that read conversations: which there are, and what was said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sim.slack.blocks import SlackSays
from sim.slack.model import App, Channel, Message
from sim.slack.workspace import Workspace

HISTORY = {
    "channel": "channels:history",
    "group": "groups:history",
    "im": "im:history",
    "mpim": "mpim:history",
}
LISTED = {
    "public_channel": ("channel", "channels:read"),
    "private_channel": ("group", "groups:read"),
    "im": ("im", "im:read"),
    "mpim": ("mpim", "mpim:read"),
}
"""Types of `users.conversations`: the kind of channel, and the scope that is needed."""
USUAL, MOST = 100, 999
DISTRIBUTED_MOST = 15
"""Messages in one answer to an app that is distributed outside of the Marketplace."""
DISTRIBUTED_CALLS = 1
"""Calls of a method that reads messages, per minute, for such an app."""
MESSAGES = ("conversations.history", "conversations.replies")
DELETED = "This message was deleted."
Arguments = dict[str, Any]


class Reading:
    """What apps may read of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def table(self) -> dict[str, Callable[[App, Arguments], dict[str, Any]]]:
        """List the methods by their names."""
        return {
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "users.conversations": self._conversations,
        }

    def _conversations(self, app: App, arguments: Arguments) -> dict[str, Any]:
        kinds = set()
        for name in str(arguments.get("types", "public_channel")).split(","):
            if name not in LISTED:
                raise SlackSays("invalid_types")
            kind, scope = LISTED[name]
            if scope not in app.scopes:
                raise SlackSays("missing_scope", needed=scope)
            kinds.add(kind)
        leaves_out = _is_true(arguments, "exclude_archived")
        found = [
            channel
            for channel in self._workspace.channels.values()
            if channel.kind in kinds and app.user in channel.members
            if not (channel.archived and leaves_out)
        ]
        page, cursor = _page(found, arguments, most=MOST)
        listed = [{"id": each.id, "name": each.name} for each in page]
        return {"channels": listed, "response_metadata": {"next_cursor": cursor}}

    def _history(self, app: App, arguments: Arguments) -> dict[str, Any]:
        """List what was said in a channel, the newest first; replies are in their threads only."""
        channel = self._readable(app, arguments)
        found = [
            message
            for message in reversed(self._workspace.messages)
            if message.channel == channel.id and message.only_for is None
            if message.thread in {None, message.ts}
            if not message.deleted or self._replies_to(message)
            if _between(message.ts, arguments)
        ]
        metadata = _is_true(arguments, "include_all_metadata")
        page, cursor = _page(found, arguments, most=_most(app))
        return self._answer([self._root(each, metadata=metadata) for each in page], cursor)

    def _replies(self, app: App, arguments: Arguments) -> dict[str, Any]:
        """List a thread, the oldest first; its first message comes regardless of the bounds."""
        channel = self._readable(app, arguments)
        roots = [
            message
            for message in self._workspace.messages
            if (message.channel, message.ts) == (channel.id, arguments["ts"])
            if not message.deleted or self._replies_to(message)
        ]
        if not roots:
            raise SlackSays("thread_not_found")
        metadata = _is_true(arguments, "include_all_metadata")
        replies = [each for each in self._replies_to(roots[0]) if _between(each.ts, arguments)]
        page, cursor = _page([roots[0], *replies], arguments, most=_most(app))
        return self._answer(
            [
                self._root(each, metadata=metadata)
                if each is roots[0]
                else each.as_json(self._workspace.file_json, metadata=metadata)
                for each in page
            ],
            cursor,
        )

    def _readable(self, app: App, arguments: Arguments) -> Channel:
        channel = self._workspace.channels.get(arguments["channel"])
        if channel is None or app.user not in channel.members:
            raise SlackSays("channel_not_found")
        if HISTORY[channel.kind] not in app.scopes:
            raise SlackSays("missing_scope", needed=HISTORY[channel.kind])
        return channel

    def _replies_to(self, root: Message) -> list[Message]:
        return [
            each for each in self._workspace.thread(root.channel, root.ts) if each.ts != root.ts
        ]

    def _root(self, message: Message, *, metadata: bool) -> dict[str, Any]:
        """Write a message of a channel, with what Slack says about its thread."""
        written = message.as_json(self._workspace.file_json, metadata=metadata)
        replies = self._replies_to(message)
        if replies:
            written |= {
                "thread_ts": message.ts,
                "reply_count": len(replies),
                "latest_reply": replies[-1].ts,
            }
        if message.deleted:
            written |= {"subtype": "tombstone", "user": "USLACKBOT", "text": DELETED}
        return written

    def _answer(self, messages: list[dict[str, Any]], cursor: str) -> dict[str, Any]:
        return {
            "messages": messages,
            "has_more": bool(cursor),
            "response_metadata": {"next_cursor": cursor},
        }


def _most(app: App) -> int:
    return DISTRIBUTED_MOST if app.distributed else MOST


def _page(found: Sequence[Any], arguments: Arguments, *, most: int) -> tuple[Sequence[Any], str]:
    """Cut a page out of a list; an app that asks for more than it may gets what it may."""
    begin = int(arguments.get("cursor") or 0)
    limit = min(int(arguments.get("limit", USUAL)), most)
    more = begin + limit < len(found)
    return found[begin : begin + limit], str(begin + limit) if more else ""


def _between(ts: str, arguments: Arguments) -> bool:
    oldest, latest = arguments.get("oldest", "0"), arguments.get("latest", "9")
    inclusive = _is_true(arguments, "inclusive")
    return oldest < ts < latest or (inclusive and ts in {oldest, latest})


def _is_true(arguments: Arguments, name: str) -> bool:
    return str(arguments.get(name, "")).lower() in {"true", "1"}
