"""The methods of Slack's Web API that an agent app calls, with their limits and refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sim.slack.blocks import (
    BLOCKS,
    CARD_FIELDS,
    TOTAL,
    SlackSays,
    check_blocks,
    count_expanded,
    measure,
    size_of,
    update_cards,
)
from sim.slack.model import SESSION_STATUSES, TEAM, App, Channel, Message, Stream
from sim.slack.reading import Reading
from sim.slack.workspace import Workspace

NEEDED = {
    "agents.sessions.rename": "chat:write",
    "agents.sessions.setStatus": "chat:write",
    "assistant.threads.setStatus": "assistant:write",
    "chat.appendStream": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.startStream": "chat:write",
    "chat.stopStream": "chat:write",
    "chat.update": "chat:write",
    "conversations.open": "im:write",
    "files.completeUploadExternal": "files:write",
    "files.delete": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "reactions.add": "reactions:write",
    "users.info": "users:read",
}
READ_ONLY = {
    "auth.test",
    "conversations.history",
    "conversations.replies",
    "files.getUploadURLExternal",
    "files.info",
    "users.conversations",
    "users.info",
}
"""Methods that take their arguments from the query or a form, never from a JSON body."""
POST_ONLY = {"files.getUploadURLExternal"}
TIERS = {
    "agents.sessions.rename": 50,
    "agents.sessions.setStatus": 50,
    "chat.appendStream": 100,
    "chat.startStream": 20,
    "chat.stopStream": 20,
    "chat.update": 50,
    "conversations.history": 50,
    "conversations.open": 50,
    "conversations.replies": 50,
    "reactions.add": 50,
    "users.conversations": 50,
    "users.info": 100,
}
"""Calls per minute, app and workspace; posting has a separate limit."""
TEXT = 40_000
UPDATED_TEXT = 4_000
TITLE = 200
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
            "agents.sessions.rename": self._rename_session,
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
            **Reading(workspace).table(),
            "conversations.open": self._open_direct,
            "files.completeUploadExternal": self._complete_upload,
            "files.delete": self._delete_file,
            "files.getUploadURLExternal": self._upload_url,
            "files.info": self._file_info,
            "reactions.add": self._add_reaction,
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
        self._refuse_some(blocks)
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
        message.stream, message.red = None, False
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
        mode = arguments.get("task_display_mode", "timeline")
        now = self._workspace.now()
        message.stream = Stream(now, now, mode=mode)
        self._write(message, arguments, may_be_empty=True)
        self._workspace.add(message)
        if not app.no_sessions:
            self._workspace.set_status(app, channel.id, arguments["thread_ts"], "processing")
        return {"channel": channel.id, "ts": message.ts}

    def _append_stream(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._open_stream(app, arguments)
        self._write(message, arguments)
        message.touched.append(self._workspace.now())
        return {"channel": message.channel, "ts": message.ts}

    def _stop_stream(self, app: App, arguments: Arguments) -> dict[str, Any]:
        message = self._open_stream(app, arguments)
        status = arguments.get("session_status", "active")
        if status not in SESSION_STATUSES:
            raise SlackSays("invalid_arguments")
        blocks = arguments.get("blocks", [])
        check_blocks(blocks)
        self._refuse_some(blocks)
        self._write(message, arguments, may_be_empty=True, below=blocks)
        message.blocks = blocks
        message.metadata = arguments.get("metadata")
        message.touched.append(self._workspace.now())
        self._workspace.end_stream(message, at=self._workspace.now())
        if not app.no_sessions:
            thread = message.thread or message.ts
            self._workspace.set_status(app, message.channel, thread, status)
        return {"channel": message.channel, "ts": message.ts}

    def _open_stream(self, app: App, arguments: Arguments) -> Message:
        message = self._own(app, arguments)
        if not self._workspace.streaming(message):
            by_user = message.stream is not None and message.stream.stopped_by_user
            raise SlackSays("stopped_by_user" if by_user else "message_not_in_streaming_state")
        return message

    def _write(
        self,
        message: Message,
        arguments: Arguments,
        *,
        may_be_empty: bool = False,
        below: Sequence[dict[str, Any]] = (),
    ) -> None:
        stream = message.stream
        assert stream is not None
        if "chunks" in arguments and "markdown_text" in arguments:
            raise SlackSays("cannot_provide_both_markdown_text_and_chunks")
        chunks = list(arguments.get("chunks", []))
        if (text := arguments.get("markdown_text")) is not None:
            chunks.append({"type": "markdown_text", "text": text})
        if not chunks and not may_be_empty:
            raise SlackSays("no_text")
        written = "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
        tasks = update_cards(stream.tasks, chunks)
        whole = message.text + written
        fields = [card.get(key, "") for card in tasks.values() for key in CARD_FIELDS]
        if measure(whole) > TOTAL:
            raise SlackSays("msg_too_long")
        if measure(whole) + sum(map(measure, fields)) + size_of(below) > TOTAL:
            raise SlackSays("msg_blocks_too_long")
        cards = len(tasks) if stream.mode == "timeline" else 1
        if count_expanded(whole) + cards > BLOCKS:
            raise SlackSays("msg_blocks_too_many")
        message.text, stream.tasks, stream.last = whole, tasks, self._workspace.now()

    def _set_session_status(self, app: App, arguments: Arguments) -> dict[str, Any]:
        if app.no_sessions:
            raise SlackSays(app.no_sessions)
        channel = self._session_channel(app, arguments)
        if arguments["status"] not in SESSION_STATUSES:
            raise SlackSays("invalid_status")
        title = arguments.get("title", "")
        if len(title) > TITLE:
            raise SlackSays("invalid_arguments")
        user = arguments.get("initiator_user_id", "")
        if user and user not in channel.members:
            raise SlackSays("user_not_found")
        place = (app, channel.id, arguments["thread_ts"])
        session = self._workspace.session(*place)
        if not session.status:
            session.title, session.initiator = title, user
        self._workspace.set_status(*place, arguments["status"])
        answer: dict[str, Any] = {"status": arguments["status"], "title": session.title}
        if "agent_session_stopped" not in app.events:
            answer["warning"] = "missing_agent_session_stopped_event_subscription"
        return answer

    def _rename_session(self, app: App, arguments: Arguments) -> dict[str, Any]:
        if app.no_sessions:
            raise SlackSays(app.no_sessions)
        channel = self._session_channel(app, arguments)
        session = self._workspace.session(app, channel.id, arguments["thread_ts"])
        if not session.status:
            raise SlackSays("session_not_found")
        if not 0 < len(arguments["title"]) <= TITLE:
            raise SlackSays("invalid_arguments")
        session.title = arguments["title"]
        return {"title": session.title}

    def _session_channel(self, app: App, arguments: Arguments) -> Channel:
        channel = self._channel(app, arguments["channel_id"], error="not_authorized")
        if not channel.sessions:
            raise SlackSays("method_not_supported_for_channel_type")
        if not arguments.get("thread_ts"):
            raise SlackSays("thread_ts_required")
        return channel

    def _set_thread_status(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel_id"])
        value = "thinking" if arguments["status"] else ""
        self._workspace.set_status(app, channel.id, arguments["thread_ts"], value)
        return {}

    def _add_reaction(self, app: App, arguments: Arguments) -> dict[str, Any]:
        channel = self._channel(app, arguments["channel"])
        for message in self._workspace.messages:
            if (message.channel, message.ts) == (channel.id, arguments["timestamp"]):
                who = message.reactions.setdefault(arguments["name"], set())
                if app.user in who:
                    raise SlackSays("already_reacted")
                who.add(app.user)
                return {}
        raise SlackSays("message_not_found")

    def _open_direct(self, app: App, arguments: Arguments) -> dict[str, Any]:
        person = arguments["users"]
        if person not in self._workspace.people:
            raise SlackSays("user_not_found")
        return {"channel": {"id": self._workspace.direct(app, person)}}

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
            raise SlackSays("missing_argument")
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

    def _delete_file(self, app: App, arguments: Arguments) -> dict[str, Any]:
        number = arguments["file"]
        if number not in self._workspace.files:
            raise SlackSays("file_not_found")
        showing = [each for each in self._workspace.messages if number in each.files]
        if any(each.app is not app for each in showing):
            raise SlackSays("cant_delete_file")
        del self._workspace.files[number]
        for each in showing:
            each.files.remove(number)
        return {}

    def _refuse_some(self, blocks: Sequence[dict[str, Any]]) -> None:
        if {block["type"] for block in blocks} & self._workspace.refused_blocks:
            raise SlackSays("invalid_blocks")

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


def _content(arguments: Arguments, *, longest: int) -> tuple[str, list[dict[str, Any]]]:
    text, blocks = arguments.get("text", ""), arguments.get("blocks", [])
    if not text and not blocks:
        raise SlackSays("no_text")
    if len(text) > longest:
        raise SlackSays("msg_too_long")
    check_blocks(blocks)
    return text, blocks
