"""Lets a person at a terminal talk to agents on a simulated Slack."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from typing import Final, Self, TextIO

from app.sim.slack_blocks import buttons, lists
from app.sim.slack_model import Message
from app.sim.slack_server import SimulatedSlack

HELP: Final = """\
Put the settings below into .env, start the bridge, then write here as Ann:
  {mention:<28} starts a thread with an agent
  > and the other one          replies in that thread; > !help lists the commands
  /Allow once                  presses a button, or picks from a list
Press Ctrl-D to quit.
"""
LOOK_SECONDS: Final = 0.5
"""How often to look again without a change: a stream may end by itself."""


class Shell:
    """One person, one channel, and an app for each agent."""

    def __init__(self, slack: SimulatedSlack, agents: Sequence[str], out: TextIO) -> None:
        self._slack = slack
        self._out = out
        self._apps = {name: slack.app(name) for name in agents}
        self._ann = slack.person("Ann")
        self._channel = slack.channel("general", [self._ann, *self._apps.values()])
        self._thread: str | None = None
        self._shown: dict[str, str] = {}
        self._over = False
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="shell")

    def __enter__(self) -> Self:
        words = HELP.format(mention=f"@{next(iter(self._apps))} fix the login test")
        self._say("\n".join([words, *self.settings(), ""]))
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._slack.changed:
            self._over = True
            self._slack.changed.notify_all()
        self._watcher.join()

    def settings(self) -> Iterator[str]:
        """Yield the settings that a bridge needs."""
        yield f"SLACK_API_URL={self._slack.url}"
        for name, app in self._apps.items():
            suffix = name.upper().replace("-", "_")
            yield f"SLACK_BOT_TOKEN__{suffix}={app.token}"
            yield f"SLACK_APP_TOKEN__{suffix}={app.app_token}"

    def write(self, line: str) -> None:
        """Send a message, or press a button."""
        if line.startswith("/"):
            self._press(line.removeprefix("/").strip())
        elif line.startswith(">") and self._thread is None:
            self._say("There is no thread yet. Start one without the >.")
        elif line.startswith(">"):
            words = self._write_mentions(line.removeprefix(">").strip())
            self._slack.say(self._ann, self._channel, words, thread=self._thread)
        elif line:
            self._thread = self._slack.say(self._ann, self._channel, self._write_mentions(line))

    def _write_mentions(self, line: str) -> str:
        """Write mentions as Slack does."""
        users = {name: app.user for name, app in self._apps.items()}
        names = "|".join(map(re.escape, sorted(users, key=len, reverse=True)))
        return re.sub(rf"@({names})\b", lambda found: f"<@{users[found[1]]}>", line)

    def _press(self, label: str) -> None:
        with self._slack.changed:
            for message in reversed(self._slack.messages):
                if label in _button_labels(message):
                    self._slack.click(self._ann, message.ts, label)
                    return
                if label in _option_labels(message):
                    self._slack.choose(self._ann, message.ts, label)
                    return
        self._say(f"No button or choice is called {label!r}.")

    def _watch(self) -> None:
        """Show each agent message once it is complete."""
        with self._slack.changed:
            while not self._over:
                for message in self._slack.messages:
                    if message.app is not None and not self._slack.streaming(message):
                        self._show(message)
                self._slack.changed.wait(LOOK_SECONDS)

    def _show(self, message: Message) -> None:
        assert message.app is not None, "only agents' messages are shown"
        offered = [f"[{label}]" for label in (*_button_labels(message), *_option_labels(message))]
        words = "\n".join(filter(None, (message.words, " ".join(offered))))
        if self._shown.get(message.ts) != words:
            self._shown[message.ts] = words
            whisper = " (only to you)" if message.only_for else ""
            self._say(f"{message.app.name}{whisper}: {words}")

    def _say(self, words: str) -> None:
        print(words, file=self._out, flush=True)


def _button_labels(message: Message) -> list[str]:
    return [each["text"]["text"] for each in buttons(message.blocks)]


def _option_labels(message: Message) -> list[str]:
    return [each["text"]["text"] for menu in lists(message.blocks) for each in menu["options"]]
