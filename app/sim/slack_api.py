"""The methods of Slack's Web API that an agent app calls, with their limits and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.sim.slack import (
    STREAM_CHARACTERS,
    TEAM,
    App,
    Channel,
    Message,
    SlackSays,
    Stream,
    Workspace,
    buttons,
    lists,
    rich_words,
)

NEEDED = {
    "agents.sessions.setStatus": "chat:write",
    "assistant.threads.setStatus": "assistant:write",
    "chat.appendStream": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.startStream": "chat:write",
    "chat.stopStream": "chat:write",
    "chat.update": "chat:write",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "users.info": "users:read",
}
HISTORY = {"channel": "channels:history", "group": "groups:history", "im": "im:history"}
READ_ONLY = {
    "auth.test",
    "conversations.replies",
    "files.getUploadURLExternal",
    "files.info",
    "users.info",
}
"""Methods that take their arguments from the query or a form, never from a JSON body."""
TIERS = {
    "agents.sessions.setStatus": 50,
    "chat.appendStream": 100,
    "chat.startStream": 20,
    "chat.stopStream": 20,
    "chat.update": 50,
    "conversations.replies": 50,
    "users.info": 100,
}
"""Calls per minute and app; posting has a separate limit."""
TEXT = 40_000
UPDATED_TEXT = 4_000
MARKDOWN = 12_000
SECTION = 3_000
BLOCKS = 50
BUTTON = 75
VALUE = 2_000
OPTIONS = 100
OPTION_VALUE = 150
ACTION_ID = 255
STATUSES = {"processing", "active", "suspended", "closed"}

Arguments = dict[str, Any]
Method = Callable[[App, Arguments], dict[str, Any]]


@dataclass
class Upload:
    """A file being uploaded: announced, sent, and then shared once."""

    name: str
    length: int
    content: bytes = b""
    shared: bool = False


class Methods:
    """The Web API on a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._uploads: dict[str, Upload] = {}
        self._table: dict[str, Method] = {
            "agents.sessions.setStatus": self._set_session_status,
            "assistant.threads.setStatus": self._set_thread_status,
            "auth.test": self._auth_test,
            "chat.appendStream": self._append_stream,
            "chat.delete": self._delete,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.postMessage": self._post_message,
            "chat.startStream": self._start_stream,
            "chat.stopStream": self._stop_stream,
            "chat.update": self._update,
            "conversations.replies": self._replies,
            "files.completeUploadExternal": self._complete_upload,
            "files.getUploadURLExternal": self._upload_url,
            "files.info": self._file_info,
            "users.info": self._user_info,
        }

    def call(self, app: App, method: str, arguments: Arguments) -> dict[str, Any]:
        """Carry out one call.

        Raises:
            SlackSays: Slack refuses it.
        """
        if method not in self._table:
            raise SlackSays("unknown_method")
        needed = NEEDED.get(method)
        if needed is not None and needed not in app.scopes:
            raise SlackSays("missing_scope", needed=needed, provided=",".join(sorted(app.scopes)))
        with self._workspace.changed:
            answer = self._table[method](app, arguments)
            self._workspace.changed.notify_all()
        return {"ok": True, **answer}

    def take_upload(self, number: str, content: bytes) -> None:
        """Take the bytes that were sent to an upload URL."""
        self._uploads[number].content = content

    def _auth_test(self, app: App, _: Arguments) -> dict[str, Any]:
        return {"team": "Home", "team_id": TEAM, "user_id": app.user, "bot_id": app.bot}

    def _post_message(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel"])
        text, blocks = _content(arguments, longest=TEXT)
        message = self._new(app, channel, arguments.get("thread_ts"))
        message.text, message.blocks = text, blocks
        message.metadata = arguments.get("metadata")
        self._workspace.add(message)
        return {"channel": channel.id, "ts": message.ts}

    def _post_ephemeral(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel"])
        if arguments["user"] not in channel.members:
            raise SlackSays("user_not_in_channel")
        text, blocks = _content(arguments, longest=TEXT)
        message = self._new(app, channel, arguments.get("thread_ts"))
        message.text, message.blocks, message.only_for = text, blocks, arguments["user"]
        self._workspace.messages.append(message)
        return {"message_ts": message.ts}

    def _update(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._own(app, arguments)
        if self._workspace.streaming(message):
            raise SlackSays("streaming_state_conflict")
        text, blocks = _content(arguments, longest=UPDATED_TEXT)
        before = message.as_json(self._workspace.file_json, metadata=False)
        message.stream = None
        message.text, message.blocks, message.edits = text, blocks, message.edits + 1
        message.metadata = arguments.get("metadata", message.metadata)
        message.touched.append(self._workspace.now())
        self._workspace.tell_changed(message, before)
        return {"channel": message.channel, "ts": message.ts, "text": message.text}

    def _delete(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._own(app, arguments)
        if self._workspace.streaming(message):
            raise SlackSays("streaming_state_conflict")
        message.deleted = True
        return {"channel": message.channel, "ts": message.ts}

    def _start_stream(self, app: App, arguments: Arguments) -> dict[str, Any]:
        if not app.streams:
            raise SlackSays("unknown_method")
        channel = self._channel(app, arguments["channel"])
        if not arguments.get("thread_ts"):
            raise SlackSays("invalid_thread_ts")
        if channel.kind != "im":
            if arguments.get("recipient_team_id") != TEAM:
                raise SlackSays("missing_recipient_team_id")
            if arguments.get("recipient_user_id") not in self._workspace.people:
                raise SlackSays("missing_recipient_user_id")
        message = self._new(app, channel, arguments["thread_ts"])
        message.stream = Stream(self._workspace.now())
        self._write(message, arguments, may_be_empty=True)
        self._workspace.add(message)
        return {"channel": channel.id, "ts": message.ts}

    def _append_stream(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._open_stream(app, arguments)
        self._write(message, arguments)
        message.touched.append(self._workspace.now())
        return {"channel": message.channel, "ts": message.ts}

    def _stop_stream(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._open_stream(app, arguments)
        check_blocks(arguments.get("blocks", []))
        self._write(message, arguments, may_be_empty=True)
        assert message.stream is not None
        message.stream.open = False
        message.blocks = arguments.get("blocks", [])
        message.metadata = arguments.get("metadata")
        message.touched.append(self._workspace.now())
        if (status := arguments.get("session_status")) is not None:
            self._note_status(app, message.channel, message.thread or message.ts, status)
        return {"channel": message.channel, "ts": message.ts}

    def _open_stream(self, app: App, arguments: Arguments) -> Message:
        message = self._own(app, arguments)
        if not self._workspace.streaming(message):
            raise SlackSays("message_not_in_streaming_state")
        return message

    def _write(self, message: Message, arguments: Arguments, *, may_be_empty: bool = False) -> None:
        stream = message.stream
        assert stream is not None
        chunks = list(arguments.get("chunks", []))
        if (text := arguments.get("markdown_text")) is not None:
            chunks.append({"type": "markdown_text", "text": text})
        if not chunks and not may_be_empty:
            raise SlackSays("no_text")
        written = "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
        if len(written) > MARKDOWN or stream.characters + len(written) > STREAM_CHARACTERS:
            raise SlackSays("msg_too_long")
        for chunk in chunks:
            match chunk["type"]:
                case "task_update":
                    if chunk["status"] not in {"pending", "in_progress", "complete", "error"}:
                        raise SlackSays("invalid_chunks")
                    stream.tasks[chunk["id"]] = {k: v for k, v in chunk.items() if k != "type"}
                case "plan_update":
                    stream.title = chunk["title"]
                case "markdown_text":
                    pass
                case _:
                    raise SlackSays("invalid_chunks")
        message.text += written
        stream.characters += len(written)
        stream.last = self._workspace.now()

    def _set_session_status(self, app: App, arguments: Arguments) -> dict[str, Any]:
        if not app.sessions:
            raise SlackSays("unknown_method")
        channel = self._channel(app, arguments["channel_id"])
        if not arguments.get("thread_ts"):
            raise SlackSays("invalid_thread_ts")
        if arguments["status"] not in STATUSES or len(arguments.get("title", "")) > 200:
            raise SlackSays("invalid_arguments")
        if arguments.get("initiator_user_id", next(iter(channel.members))) not in channel.members:
            raise SlackSays("user_not_in_channel")
        self._note_status(app, channel.id, arguments["thread_ts"], arguments["status"])
        stoppable = "agent_session_stopped" in app.events
        return {} if stoppable else {"warning": "missing_event_subscription"}

    def _set_thread_status(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel_id"])
        value = "thinking" if arguments["status"] else ""
        self._note_status(app, channel.id, arguments["thread_ts"], value)
        return {}

    def _note_status(self, app: App, channel: str, thread: str, status: str) -> None:
        self._workspace.statuses[app.name, channel, thread] = (status, self._workspace.now())

    def _replies(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel"], error="channel_not_found")
        if HISTORY[channel.kind] not in app.scopes:
            raise SlackSays("missing_scope", needed=HISTORY[channel.kind])
        thread = self._workspace.thread(channel.id, arguments["ts"])
        if not thread:
            raise SlackSays("thread_not_found")
        oldest, latest = arguments.get("oldest", "0"), arguments.get("latest", "9")
        inclusive = str(arguments.get("inclusive", "")).lower() in {"true", "1"}
        # Slack returns the first message of the thread regardless of the bounds.
        found = [m for m in thread[1:] if _between(m.ts, oldest, latest, inclusive=inclusive)]
        begin, limit = int(arguments.get("cursor") or 0), int(arguments.get("limit", 1000))
        page = [thread[0], *found][begin : begin + limit]
        more = begin + limit < len(found) + 1
        with_metadata = str(arguments.get("include_all_metadata", "")).lower() in {"true", "1"}
        return {
            "messages": [
                m.as_json(self._workspace.file_json, metadata=with_metadata) for m in page
            ],
            "has_more": more,
            "response_metadata": {"next_cursor": str(begin + limit) if more else ""},
        }

    def _user_info(self, _: App, arguments: Arguments) -> dict[str, Any]:
        person = self._workspace.people.get(arguments["user"])
        if person is None:
            raise SlackSays("user_not_found")
        user = {
            "id": person.id,
            "team_id": "T0ELSE" if person.kind == "stranger" else TEAM,
            "name": person.name.lower(),
            "real_name": person.name,
            "profile": {"display_name": person.name, "real_name": person.name},
            "deleted": False,
            "is_bot": False,
            "is_restricted": person.kind == "guest",
            "is_ultra_restricted": False,
            "is_stranger": person.kind == "stranger",
        }
        return {"user": user}

    def _file_info(self, _: App, arguments: Arguments) -> dict[str, Any]:
        if arguments["file"] not in self._workspace.files:
            raise SlackSays("file_not_found")
        return {"file": self._workspace.file_json(arguments["file"])}

    def _upload_url(self, _: App, arguments: Arguments) -> dict[str, Any]:
        if not arguments.get("filename") or int(arguments.get("length", 0)) < 1:
            raise SlackSays("invalid_arguments")
        number = f"F9{len(self._uploads):04d}"
        self._uploads[number] = Upload(arguments["filename"], int(arguments["length"]))
        return {"upload_url": f"{self._workspace.files_url}/upload/{number}", "file_id": number}

    def _complete_upload(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel_id"])
        message = self._new(app, channel, arguments.get("thread_ts"))
        message.text = arguments.get("initial_comment", "")
        ready = {each["id"]: self._uploads.get(each["id"]) for each in arguments["files"]}
        for each in arguments["files"]:
            upload = ready[each["id"]]
            if upload is None or upload.shared or len(upload.content) != upload.length:
                raise SlackSays("file_not_found")
            upload.shared = True
            number = self._workspace.file(upload.name, upload.content, number=each["id"])
            file = self._workspace.files[number]
            file.title, file.shares = each.get("title", upload.name), {channel.id: message.ts}
            message.files.append(number)
        self._workspace.add(message)
        return {"files": [self._workspace.file_json(each) for each in message.files]}

    def _new(self, app: App, channel: Channel, thread: str | None) -> Message:
        workspace = self._workspace
        if thread is not None and not workspace.thread(channel.id, thread):
            raise SlackSays("thread_not_found")
        message = Message(workspace.ts(), channel.id, app.user, thread=thread, app=app)
        message.touched.append(workspace.now())
        return message

    def _own(self, app: App, arguments: Arguments) -> Message:
        channel = self._channel(app, arguments["channel"], error="channel_not_found")
        for message in self._workspace.messages:
            if (message.channel, message.ts) == (channel.id, arguments["ts"]):
                if message.app is not app:
                    raise SlackSays("cant_update_message")
                if not message.deleted:
                    return message
        raise SlackSays("message_not_found")

    def _channel(self, app: App, name: str, error: str = "not_in_channel") -> Channel:
        channel = self._workspace.channels.get(name)
        if channel is None:
            raise SlackSays("channel_not_found")
        if app.user not in channel.members:
            raise SlackSays(error)
        if channel.archived:
            raise SlackSays("is_archived")
        return channel


def _between(ts: str, oldest: str, latest: str, *, inclusive: bool) -> bool:
    return oldest < ts < latest or (inclusive and ts in {oldest, latest})


def _content(arguments: Arguments, *, longest: int) -> tuple[str, list[dict[str, Any]]]:
    text, blocks = arguments.get("text", ""), arguments.get("blocks", [])
    if not text and not blocks:
        raise SlackSays("no_text")
    if len(text) > longest:
        raise SlackSays("msg_too_long")
    check_blocks(blocks)
    return text, blocks


def check_blocks(blocks: list[dict[str, Any]]) -> None:
    """Refuse what Block Kit refuses."""
    if len(blocks) > BLOCKS:
        raise SlackSays("invalid_blocks", detail="too many")
    if sum(len(block["text"]) for block in blocks if block["type"] == "markdown") > MARKDOWN:
        raise SlackSays("msg_blocks_too_long")
    for block in blocks:
        if not _is_good(block):
            raise SlackSays("invalid_blocks", detail=block)
    for button in buttons(blocks):
        if not 0 < len(button["text"]["text"]) <= BUTTON or len(button["value"]) > VALUE:
            raise SlackSays("invalid_blocks", detail=button)
    for menu in lists(blocks):
        if not _is_good_list(menu):
            raise SlackSays("invalid_blocks", detail=menu)
    names = [element["action_id"] for element in (*buttons(blocks), *lists(blocks))]
    if len(names) != len(set(names)):
        raise SlackSays("invalid_blocks", detail="action_id twice")


def _is_good_list(menu: dict[str, Any]) -> bool:
    options = menu["options"]
    values = {option["value"] for option in options}
    return (
        0 < len(options) <= OPTIONS
        and len(values) == len(options)
        and 0 < len(menu["action_id"]) <= ACTION_ID
        and 0 < len(menu["placeholder"]["text"]) <= OPTION_VALUE
        and all(0 < len(value) <= OPTION_VALUE for value in values)
        and all(0 < len(option["text"]["text"]) <= BUTTON for option in options)
    )


def _is_good(block: dict[str, Any]) -> bool:
    match block["type"]:
        case "section":
            return 0 < len(block["text"]["text"]) <= SECTION
        case "markdown":
            return bool(block["text"])
        case "context":
            shown = [len(element["text"]) for element in block["elements"]]
            return 0 < len(shown) <= 10 and 0 < min(shown) <= max(shown) <= SECTION
        case "actions":
            return 0 < len(block["elements"]) <= 25
        case "rich_text":
            return all(text for part in block["elements"] for text in rich_words(part))
        case kind:
            return bool(kind == "divider")
