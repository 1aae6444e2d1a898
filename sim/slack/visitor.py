"""Puts a person at a terminal into a channel of the simulated Slack."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sim.slack.blocks import buttons, lists
from sim.slack.model import Message
from sim.slack.server import SimulatedSlack


@contextmanager
def visit(agents: Sequence[str]) -> Iterator[SlackVisitor]:
    """Start a Slack with an app for each agent."""
    with SimulatedSlack() as slack:
        yield SlackVisitor(slack, agents)


class SlackVisitor:
    """Ann, one channel, and an app for each agent."""

    a_thread = "a thread"

    def __init__(self, slack: SimulatedSlack, agents: Sequence[str]) -> None:
        self._slack = slack
        self._apps = {name: slack.app(name) for name in agents}
        self._ann = slack.person("Ann")
        self._channel = slack.channel("general", [self._ann, *self._apps.values()])
        self._thread: str | None = None

    @property
    def changed(self) -> threading.Condition:
        """The platform's lock, which signals every change."""
        return self._slack.changed

    def settings(self) -> Iterator[str]:
        """Yield the settings that a bridge needs, one line each."""
        yield f"SLACK_API_URL={self._slack.url}"
        for name, app in self._apps.items():
            suffix = name.upper().replace("-", "_")
            yield f"SLACK_BOT_TOKEN__{suffix}={app.token}"
            yield f"SLACK_APP_TOKEN__{suffix}={app.app_token}"

    def start(self, words: str) -> None:
        """Start a thread with the agent that the words mention."""
        self._thread = self._slack.say(self._ann, self._channel, self._write_mentions(words))

    def reply(self, words: str) -> bool:
        """Reply in the last thread; false if there is none."""
        if self._thread is None:
            return False
        written = self._write_mentions(words)
        self._slack.say(self._ann, self._channel, written, thread=self._thread)
        return True

    def _write_mentions(self, line: str) -> str:
        """Write mentions as Slack does."""
        users = {name: app.user for name, app in self._apps.items()}
        names = "|".join(map(re.escape, sorted(users, key=len, reverse=True)))
        return re.sub(rf"@({names})\b", lambda found: f"<@{users[found[1]]}>", line)

    def press(self, label: str) -> bool:
        """Press the newest button with this label; false if there is none."""
        with self._slack.changed:
            for message in reversed(self._slack.messages):
                if label in _button_labels(message):
                    self._slack.click(self._ann, message.ts, label)
                    return True
                if label in _option_labels(message):
                    self._slack.choose(self._ann, message.ts, label)
                    return True
        return False

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield each agent message once it is complete."""
        for message in self._slack.messages:
            if message.app is None or self._slack.streaming(message):
                continue
            labels = (*_button_labels(message), *_option_labels(message))
            offered = " ".join(f"[{label}]" for label in labels)
            words = "\n".join(filter(None, (message.words, offered)))
            whisper = " (only to you)" if message.only_for else ""
            yield message.ts, f"{message.app.name}{whisper}: {words}"


def _button_labels(message: Message) -> list[str]:
    return [each["text"]["text"] for each in buttons(message.blocks)]


def _option_labels(message: Message) -> list[str]:
    return [each["text"]["text"] for menu in lists(message.blocks) for each in menu["options"]]
