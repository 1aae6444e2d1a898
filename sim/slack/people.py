"""What people do on the simulated Slack, each by one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sim.slack.blocks import buttons, feedback_buttons, lists
from sim.slack.model import (
    TEAM,
    App,
    Message,
)
from sim.slack.workspace import Workspace


class People(Workspace):
    """The workspace in the hands of people."""

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        *,
        thread: str | None = None,
        files: Iterable[str] = (),
        attachments: Iterable[dict[str, Any]] = (),
        bot: App | None = None,
    ) -> str:
        """Post a message as a person, or as a bot that is not an agent; returns its ts."""
        with self.changed:
            said = Message(self.ts(), channel, user, text, thread, bot, files=list(files))
            said.attachments.extend(attachments)
            self.add(said, mentions=True)
        return said.ts

    def forward(
        self, user: str, channel: str, ts: str, text: str = "", *, thread: str | None = None
    ) -> str:
        """Forward a message, with a text; returns the ts of the new one."""
        message = self.message(ts)
        author = self.people.get(message.user)
        attachment = {
            "is_share": True,
            "is_msg_unfurl": True,
            "author_id": message.user,
            "author_name": author.name if author is not None else message.user,
            "channel_id": message.channel,
            "channel_name": self.channels[message.channel].name,
            "ts": ts,
            "text": message.text,
            "fallback": f"[A while ago] {message.text}",
            "files": [self.file_json(each) for each in message.files],
        }
        return self.say(user, channel, text, thread=thread, attachments=[attachment])

    def edit(self, ts: str, text: str) -> None:
        """Edit a message."""
        with self.changed:
            message = self.message(ts)
            before = message.as_json(self.file_json, metadata=False)
            message.text, message.edits = text, message.edits + 1
            message.edited = self.ts()
            self.tell_changed(message, before)

    def unfurl(self, ts: str) -> None:
        """Have Slack add a preview to a message, which looks like an edit."""
        with self.changed:
            message = self.message(ts)
            self.tell_changed(message, message.as_json(self.file_json, metadata=False))

    def delete(self, ts: str) -> None:
        """Delete a message."""
        with self.changed:
            message = self.message(ts)
            message.deleted = True
            event = {
                "type": "message",
                "subtype": "message_deleted",
                "hidden": True,
                "deleted_ts": ts,
                "previous_message": message.as_json(self.file_json, metadata=False),
            }
            self.tell(message.channel, event)

    def click(self, user: str, ts: str, label: str) -> None:
        """Press a button.

        Raises:
            LookupError: there is no such button.
        """
        with self.changed:
            message = self.message(ts)
            button = next((b for b in buttons(message.blocks) if b["text"]["text"] == label), None)
            if button is None:
                raise LookupError(f"there is no button {label!r} on {message.words!r}")
            self._act(user, message, button)

    def choose(self, user: str, ts: str, label: str) -> None:
        """Pick an option from a list.

        Raises:
            LookupError: no list of this message has it.
        """
        with self.changed:
            message = self.message(ts)
            for menu in lists(message.blocks):
                for option in menu["options"]:
                    if option["text"]["text"] == label:
                        action = {key: menu[key] for key in ("type", "action_id", "placeholder")}
                        self._act(user, message, {**action, "selected_option": option})
                        return
            raise LookupError(f"there is no {label!r} to choose on {message.words!r}")

    def rate(self, user: str, ts: str, *, good: bool) -> None:
        """Press one of the two buttons that rate an answer."""
        with self.changed:
            message = self.message(ts)
            pair = next(feedback_buttons(message.blocks))
            button = pair["positive_button" if good else "negative_button"]
            action = {"type": "feedback_buttons", "action_id": pair["action_id"], **button}
            self._act(user, message, action)

    def use_shortcut(self, user: str, app: App, ts: str, callback: str) -> None:
        """Use a message shortcut of an app on a message."""
        with self.changed:
            message, person = self.message(ts), self.people[user]
            payload = {
                "type": "message_action",
                "callback_id": callback,
                "action_ts": self.ts(),
                "team": {"id": TEAM},
                "user": {"id": user, "name": person.name},
                "channel": {"id": message.channel, "name": self.channels[message.channel].name},
                "message_ts": ts,
                "message": message.as_json(self.file_json, metadata=False),
                "trigger_id": "1.2.3",
                "response_url": self.files_url.replace("/files", "/respond"),
            }
            self.emit(app, "interactive", payload)

    def _act(self, user: str, message: Message, element: dict[str, Any]) -> None:
        """Tell the app of a message that a person used one of its elements."""
        assert message.app is not None, "only apps write such messages"
        person = self.people[user]
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": person.name, "name": person.name},
            "team": {"id": TEAM},
            "api_app_id": message.app.id,
            "container": {
                "type": "message",
                "message_ts": message.ts,
                "channel_id": message.channel,
            },
            "channel": {"id": message.channel},
            "message": message.as_json(self.file_json, metadata=False),
            "actions": [{**element, "action_ts": self.ts(), "block_id": "b1"}],
        }
        self.emit(message.app, "interactive", payload)

    def press_stop(self, user: str, app: App, channel: str, thread: str) -> None:
        """Press the native Stop button.

        Raises:
            LookupError: there is none.
        """
        with self.changed:
            stoppable = "agent_session_stopped" in app.events
            if not stoppable or self.status(app, channel, thread) != "processing":
                raise LookupError("there is no Stop button")
            stopped = [m for m in self.thread(channel, thread) if self.streaming(m)]
            stopped = [message for message in stopped if message.app is app]
            for message in stopped:
                assert message.stream is not None
                message.stream.stopped_by_user = True
                self.end_stream(message, at=self.now())
            event = {
                "type": "agent_session_stopped",
                "channel": channel,
                "thread_ts": thread,
                "user": user,
                "streaming_message_ts": [message.ts for message in stopped],
            }
            self._send(app, event)
