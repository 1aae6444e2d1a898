"""Lets a person at a terminal talk to agents on a simulated platform."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final, Protocol, Self, TextIO

HELP: Final = """\
Put the settings below into .env, start the bridge, then write here as Ann:
  {mention:<28} starts {a_thread} with an agent
  > and the other one          replies there; > !help lists the commands
  /Allow once                  presses a button, or picks from a list
Press Ctrl-D to quit.
"""
LOOK_SECONDS: Final = 0.5
"""How often to look again without a change: some things end by themselves."""


class Visitor(Protocol):
    """One person on a platform, with an app for each agent."""

    a_thread: str
    """What a conversation with an agent is called there."""

    @property
    def changed(self) -> threading.Condition:
        """The platform's lock, which signals every change."""

    def settings(self) -> Iterator[str]:
        """Yield the settings that a bridge needs, one line each."""

    def start(self, words: str) -> None:
        """Start a thread with the agent that the words mention."""

    def reply(self, words: str) -> bool:
        """Reply in the last thread; false if there is none."""

    def press(self, label: str) -> bool:
        """Press the newest button with this label; false if there is none."""

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield what agents wrote and what went wrong, each with an id of its own."""


class Shell:
    """Reads what the person writes, and shows what agents write."""

    def __init__(self, visitor: Visitor, agents: Sequence[str], out: TextIO) -> None:
        self._visitor = visitor
        self._agents = agents
        self._out = out
        self._shown: dict[str, str] = {}
        self._over = False
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="shell")

    def __enter__(self) -> Self:
        mention = f"@{self._agents[0]} fix the login test"
        words = HELP.format(mention=mention, a_thread=self._visitor.a_thread)
        self._say("\n".join([words, *self._visitor.settings(), ""]))
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._visitor.changed:
            self._over = True
            self._visitor.changed.notify_all()
        self._watcher.join()

    def write(self, line: str) -> None:
        """Send a message, or press a button."""
        if line.startswith("/"):
            label = line.removeprefix("/").strip()
            if not self._visitor.press(label):
                self._say(f"No button or choice is called {label!r}.")
        elif line.startswith(">"):
            if not self._visitor.reply(line.removeprefix(">").strip()):
                self._say(
                    f"There is no {self._visitor.a_thread.split()[-1]} yet. "
                    "Start one without the >."
                )
        elif line:
            self._visitor.start(line)

    def _watch(self) -> None:
        with self._visitor.changed:
            while not self._over:
                for number, words in self._visitor.shown():
                    if self._shown.get(number) != words:
                        self._shown[number] = words
                        self._say(words)
                self._visitor.changed.wait(LOOK_SECONDS)

    def _say(self, words: str) -> None:
        print(words, file=self._out, flush=True)
