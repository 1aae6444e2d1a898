"""People, a simulated Slack, and a bridge in a process of its own with agents in it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from app.clock import Clock
from app.model.types import ActivePlace
from app.services.slack.adapter import SlackAdapter, SlackApp
from app.services.slack.missed import Threads
from app.services.slack.people import Colleagues, Seal
from sim.slack.blocks import lists
from sim.slack.model import App, Message
from sim.slack.server import SimulatedSlack
from tests.support.bridge import SPEED, BridgeProcess, demo
from tests.support.platform import Platform

SECONDS = 30.0


@dataclass
class SlackWorld:
    """One workspace with one channel, one bridge, and an app for each agent."""

    folder: Path
    agents: tuple[str, ...] = ("claude",)
    settings: dict[str, str] = field(default_factory=dict)
    app: dict[str, Any] = field(default_factory=dict)
    """How the apps differ from the usual."""
    resend_seconds: float = 1.0
    entry: dict[str, Any] = field(default_factory=dict)
    """How the agents differ from the usual."""
    speed: float = SPEED
    elsewhere: tuple[str, ...] = ()
    """Agents of the bridge without an app here."""
    page: bool = False
    """Whether the agents are on the page too."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The entries of agents that are no demo agents."""
    began: float | None = None
    """The time of day at the start, if it is not the real one; `pass_time` moves it."""
    seed: int = 0

    def __post_init__(self) -> None:
        # A machine may be slow for longer than Slack is patient.
        self.slack = SimulatedSlack(
            self.now,
            resend_seconds=self.resend_seconds,
            retries=1000,
            speed=self.speed,
            seed=self.seed,
        )
        self.platform = Platform()
        self.apps = {name: self.slack.app(name, **self.app) for name in self.agents}
        self.ann = self.slack.person("Ann")
        self.bob = self.slack.person("Bob")
        self.guest = self.slack.person("Gus", "guest")
        self.stranger = self.slack.person("Sam", "stranger")
        people = [self.ann, self.bob, self.guest, self.stranger]
        self.channel = self.slack.channel("general", [*people, *self.apps.values()])

    def __enter__(self) -> Self:
        self.slack.__enter__()
        self.platform.__enter__()
        tokens: dict[str, str] = {}
        for name, app in self.apps.items():
            tokens[f"SLACK_BOT_TOKEN__{name.upper()}"] = app.token
            tokens[f"SLACK_APP_TOKEN__{name.upper()}"] = app.app_token
        self.bridge = BridgeProcess(
            self.folder,
            self.platform,
            agents={
                name: self.entries.get(name) or demo(**self.entry)
                for name in (*self.agents, *self.elsewhere)
            },
            settings={"SLACK_API_URL": self.slack.url, **tokens, **self.settings},
            speed=self.speed,
            page=self.page,
            clock=None if self.began is None else self.folder / "clock",
        )
        self.pass_time(0)
        self.bridge.__enter__()
        self.wait_listening()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.bridge.__exit__()
        finally:
            self.platform.__exit__()
            self.slack.__exit__()

    def now(self) -> float:
        """Tell the time of day, of Slack and of the bridge."""
        return time.time() if self.began is None else self.began

    def pass_time(self, seconds: float) -> None:
        """Let time pass on Slack and in the bridge, if it is not the real one."""
        if self.began is not None:
            self.began += seconds
            self.bridge.set_clock(datetime.fromtimestamp(self.began, UTC).isoformat())

    def wait_listening(self) -> None:
        """Wait until every app has its line."""
        self.wait(lambda: all(self.slack.connected(app) for app in self.apps.values()))

    def wait(self, done: Callable[[], object]) -> None:
        """Wait until something is true of the workspace."""
        try:
            self.slack.wait(done, SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.bridge.log.read_text()[-6000:]}") from error

    def at(self, name: str) -> str:
        """Write a mention of an agent."""
        return f"<@{self.apps[name].user}>"

    def say(
        self, text: str, *, who: str | None = None, thread: str | None = None, **more: Any
    ) -> str:
        """Say something in the channel."""
        return self.slack.say(who or self.ann, self.channel, text, thread=thread, **more)

    def answers(self, thread: str, name: str = "claude") -> list[Message]:
        """List what an agent's app shows in a thread."""
        app = self.apps[name]
        return [each for each in self.slack.thread(self.channel, thread) if each.app is app]

    def wait_answer(
        self, thread: str, words: str, name: str = "claude", *, times: int = 1
    ) -> Message:
        """Wait until so many messages of an agent hold these words and nothing is written on."""

        def shown() -> list[Message]:
            return [each for each in self.answers(thread, name) if words in each.words]

        def settled() -> bool:
            found = shown()
            return len(found) >= times and not any(map(self.slack.streaming, found))

        self.wait(settled)
        return shown()[-1]

    def wait_told(self, thread: str, words: str) -> None:
        """Wait until any app shows these words in a thread."""
        self.wait(lambda: any(words in each.words for each in self.said(thread)))

    def said(self, thread: str) -> list[Message]:
        """List what all apps show in a thread."""
        shown = self.slack.thread(self.channel, thread)
        return [each for each in shown if each.app is not None]

    def wait_button(self, thread: str, label: str, name: str = "claude") -> Message:
        """Wait until a message of an agent has a button."""

        def shown() -> list[Message]:
            return [
                each
                for each in self.answers(thread, name)
                for block in each.blocks
                if block["type"] == "actions"
                and any(button["text"]["text"] == label for button in block["elements"])
            ]

        self.wait(shown)
        return shown()[-1]

    def wait_list(self, thread: str, name: str = "claude") -> Message:
        """Wait until a message of an agent has a list to choose from."""

        def shown() -> list[Message]:
            return [each for each in self.answers(thread, name) if [*lists(each.blocks)]]

        self.wait(shown)
        return shown()[-1]

    def too_often(self) -> list[str]:
        """List messages that were written to more often than once per second of the bridge."""
        return too_often(self.slack, 1.0 / self.speed)

    def whispers(self, user: str) -> list[str]:
        """List what only one person was shown."""
        with self.slack.changed:
            return [each.words for each in self.slack.messages if each.only_for == user]

    def settle(self) -> None:
        """Wait until nothing is left to do."""
        query = """
            select (select count(*) from delivery where state = 'new')
                 + (select count(*) from turn where state in ('queued', 'starting', 'prompted'))
                 + (select count(*) from post where state in ('new', 'closing'))
        """
        self.wait(lambda: not self.slack.unacknowledged)
        self.bridge.wait(lambda: self.bridge.rows(query) == [(0,)], "something is still open")

    def turns(self) -> int:
        """Count all turns that there ever were."""
        return int(self.bridge.rows("select count(*) from turn")[0][0])

    def wait_state(self, state: Literal["prompted"], number: int = 1) -> None:
        """Wait until so many turns are in a state."""
        query = "select count(*) from turn where state = ?"
        self.bridge.wait(
            lambda: self.bridge.rows(query, state) == [(number,)], f"no turn is {state}"
        )


def too_often(slack: SimulatedSlack, pace: float = 1.0) -> list[str]:
    """List messages that were written to twice within a second."""
    slack_of_time = 0.05
    return [
        message.ts
        for message in slack.messages
        for earlier, later in zip(message.touched, message.touched[1:], strict=False)
        if later - earlier < pace - slack_of_time
    ]


def written_by(slack: SimulatedSlack, app: App) -> list[Message]:
    """List everything that an app shows."""
    return [message for message in slack.messages if message.app is app]


def slack_adapter(
    slack: SimulatedSlack,
    app: App,
    *,
    clock: Clock,
    folder: Path,
    colleagues: Colleagues | None = None,
    active: Callable[[float], Awaitable[Sequence[ActivePlace]]] | None = None,
    bots: Collection[str] = (),
    title: str = "",
    **more: float,
) -> SlackAdapter:
    """Make an adapter on the simulated Slack that knows of no earlier threads."""

    async def nothing(*_: float) -> tuple[()]:
        return ()

    return SlackAdapter(
        SlackApp(app.name, app.token, app.app_token, base_url=slack.url, bots=bots),
        colleagues=colleagues or Colleagues([app.name]),
        seal=Seal("secret-key-of-the-tests"),
        threads=Threads(active or nothing, nothing),
        title=lambda _key: title,
        uploads=folder / "uploads",
        clock=clock,
        **more,
    )
