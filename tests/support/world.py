"""People, a platform, and a bridge that may die at any moment.

What is said is said again until it is acknowledged. Every message carries a word of its own, by
which it is found again in what the agent was told, in the transcript and in the place.
"""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from tests.support.bridge import SECONDS, SPEED, BridgeProcess, demo
from tests.support.hook import message
from tests.support.platform import Platform, RemotePost

OPEN = "('queued', 'starting', 'prompted', 'parked')"
UNSETTLED = f"""
    select (select count(*) from delivery where state = 'new')
         + (select count(*) from turn where state in {OPEN} and not held)
         + (select count(*) from post where state in ('new', 'closing'))
"""


@dataclass(frozen=True)
class Said:
    """One message, and who must answer it; nobody answers a command."""

    event: dict[str, Any]
    word: str
    agents: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it was said."""
        return str(self.event["place"])


@dataclass
class World:
    """One bridge and all that happens around it."""

    folder: Path
    deadly: bool = False
    """Whether the bridge can be killed from its agent's side."""
    entry: dict[str, Any] = field(default_factory=dict)
    """More keys of the agent's entry."""
    patience: float = SECONDS
    """For how many seconds the platform delivers an event again."""
    settings: dict[str, str] = field(default_factory=dict)
    new_delivery_ids: bool = False
    """Whether a repeated delivery comes under a new id, with equal bytes."""
    option: str = "allow"
    """What is answered to every ask."""

    forge: Path | None = None
    """Where tokens come from and pull requests go to, if there is such a place."""

    def __post_init__(self) -> None:
        self.platform = Platform()
        self.bridge = self.make_bridge()
        command = self.bridge.deadly if self.deadly else ()
        self.bridge.agents = {"demo": demo(*command, **self.entry)}
        self.said: list[Said] = []
        self.deaths = 0
        self.polite_ends = 0
        self._answered: set[int] = set()
        self._numbers = itertools.count(1)
        self.reviving = threading.RLock()

    def make_bridge(self) -> BridgeProcess:
        """Make the bridge that people talk to."""
        return BridgeProcess(
            self.folder, self.platform, settings=self.settings, forge=self.forge, speed=SPEED
        )

    def __enter__(self) -> Self:
        self.platform.__enter__()
        self.bridge.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.bridge.__exit__()
        finally:
            self.platform.__exit__()

    def say(self, place: str, text: str, *agents: str, speaker: str = "Ann") -> str:
        """Say something until it is acknowledged; returns the word by which it is found again."""
        word = f"word-{next(self._numbers):03d}"
        agents = agents or ("demo",)
        event = message(place, f"{text}\nsay {word}", *agents, speaker=speaker)
        self.said.append(Said(event, word, agents))
        self.deliver(event, agent=agents[0])
        return word

    def command(self, place: str, text: str, speaker: str = "Ann") -> None:
        """Give a command until it is acknowledged."""
        event = message(place, text, "demo", speaker=speaker)
        self.said.append(Said(event, "", ()))
        self.deliver(event)

    def deliver(self, event: dict[str, Any], *, agent: str = "demo") -> None:
        """Deliver an event as a platform does: again and again until it is acknowledged."""
        delivery_id = uuid4().hex

        def acknowledged() -> bool:
            nonlocal delivery_id
            if self.post(event, agent, delivery_id) == 200:
                return True
            delivery_id = uuid4().hex if self.new_delivery_ids else delivery_id
            self.revive()
            return False

        self.bridge.wait(acknowledged, f"never acknowledged: {event}", self.patience)

    def post(self, event: dict[str, Any], agent: str, delivery_id: str) -> int:
        """Send an event once; returns the status, 0 if there was no answer."""
        return self.bridge.deliver(event, agent=agent, delivery_id=delivery_id)

    @property
    def data_dirs(self) -> list[Path]:
        """Where the bridge keeps everything."""
        return [self.bridge.data_dir]

    def revive(self) -> None:
        """Start the bridge again if it is dead."""
        with self.reviving:
            while self.bridge.dead:
                self.deaths += 1
                self.bridge.start()

    def restart(self) -> None:
        """End the bridge politely and start it again."""
        with self.reviving:
            self.end()
            self.bridge.start()

    def end(self) -> None:
        """End the bridge politely; what it was to die of is forgotten, if it did not just then."""
        self.bridge.armed.unlink(missing_ok=True)
        while (status := self.bridge.stop()) == -signal.SIGKILL:
            self.settle()
        assert status == 0
        self.polite_ends += 1

    def settle(self, also: Callable[[], bool] = lambda: True) -> None:
        """Let all that was said come to its end, whatever the bridge dies of meanwhile."""

        def settled() -> bool:
            self.revive()
            self.answer_asks()
            return self.bridge.rows(UNSETTLED) == [(0,)] and also()

        self.bridge.wait(settled, "something never came to its end")

    def answer_asks(self) -> None:
        """Answer whatever is asked in a place."""
        for post in self.platform.shown("ask"):
            number = int(post.content["ask"])
            if post.state == "open" and number not in self._answered:
                self.answer(number, self.option)

    def answer(self, ask: int, option: str, speaker: str = "Ann") -> None:
        """Press a button."""
        self._answered.add(ask)
        person = {"id": speaker.lower(), "name": speaker}
        self.deliver({"ask": ask, "option": option, "speaker": person, "press": uuid4().hex})

    def turns(self, place: str = "t1") -> list[RemotePost]:
        """List what a place shows of its turns."""
        return self.platform.turns(place)

    def wait_for(
        self, state: str, place: str = "t1", number: int = -1, seconds: float = SECONDS
    ) -> RemotePost:
        """Wait until a turn of a place shows a state."""

        def shown(_: list[RemotePost]) -> bool:
            return [post.state for post in self.turns(place)][number:][:1] == [state]

        self.platform.wait(shown, seconds)
        return self.turns(place)[number]

    def kill(self) -> None:
        """Kill the bridge with -9 and start it again."""
        self.bridge.kill()
        self.revive()

    def wait_file(self, name: str, session: int = 1, *, take: bool = False) -> None:
        """Wait until an agent has made a file in its workspace, and take it away if so told."""
        path = self.bridge.workspace(session=session) / name
        self.bridge.wait(path.exists, f"{name} never appeared")
        if take:
            path.unlink()

    def wait_row(self, words: str) -> None:
        """Wait until the transcript holds these words."""
        query = "select count(*) from transcript where replace(text, ?, '') <> text"
        self.bridge.wait(lambda: self.bridge.rows(query, words) != [(0,)], f"{words} not written")

    def wait_decided(self, word: str) -> None:
        """Wait until it is decided what a message leads to."""
        query = "select count(*) from decision where message_id = ?"
        number = next(said.event["message_id"] for said in self.said if said.word == word)
        self.bridge.wait(lambda: self.bridge.rows(query, number) == [(1,)], f"{word} undecided")

    def touch(self, name: str, session: int = 1) -> None:
        """Make a file in an agent's workspace, so that it goes on."""
        path = self.bridge.workspace(session=session) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
