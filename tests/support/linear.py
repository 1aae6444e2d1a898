"""A bridge with agents on the simulated Linear, which outlives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sim.linear import App, Linear, LinearSession
from tests.support.bridge import SPEED, BridgeProcess, demo
from tests.support.platform import Platform

ENDED = {"complete", "error"}


def credentials(app: App, agent: str, *, minted: bool = False) -> dict[str, str]:
    """Write the settings of one Linear agent."""
    given = {"WEBHOOK_SECRET": app.webhook_secret}
    if minted:
        given |= {"CLIENT_ID": app.client_id, "CLIENT_SECRET": app.client_secret}
    else:
        given["ACCESS_TOKEN"] = next(iter(app.tokens))
    return {f"LINEAR_{name}__{agent.upper()}": value for name, value in given.items()}


@dataclass
class LinearWorld:
    """One bridge, one Linear, and Ann, who is a member."""

    folder: Path
    agents: tuple[str, ...] = ("demo",)
    minted: bool = False
    """Whether the bridge mints its tokens."""
    settings: dict[str, str] = field(default_factory=dict)
    entry: dict[str, Any] = field(default_factory=dict)
    page: bool = False
    """Whether the agents are on the page too."""
    speed: float = SPEED

    def __post_init__(self) -> None:
        self.linear = Linear()
        self.platform = Platform()
        self.apps = {name: self.linear.agent(name) for name in self.agents}
        self.ann = self.linear.person("Ann")
        settings = {"LINEAR_API_URL": self.linear.url, "GRACE_SECONDS": "1", **self.settings}
        for name, app in self.apps.items():
            settings |= credentials(app, name, minted=self.minted)
        self.bridge = BridgeProcess(
            self.folder,
            self.platform,
            agents={name: demo(**self.entry) for name in self.agents},
            settings=settings,
            page=self.page,
            speed=self.speed,
        )
        for name, app in self.apps.items():
            address = f"http://127.0.0.1:{self.bridge.port}/webhooks/linear"
            app.webhook_url = address if name == self.agents[0] else f"{address}/{name}"
            app.callbacks.append(
                f"http://127.0.0.1:{self.bridge.port}/install/linear/{name}/callback"
            )

    def __enter__(self) -> Self:
        self.linear.__enter__()
        self.platform.__enter__()
        self.bridge.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.bridge.__exit__()
        finally:
            self.platform.__exit__()
            self.linear.__exit__()

    @property
    def app(self) -> App:
        """The first agent."""
        return self.apps[self.agents[0]]

    def assign(self, *lines: str, agent: str = "") -> LinearSession:
        """Give a new issue to an agent."""
        issue = self.linear.issue("Do this", "\n".join(lines), by=self.ann)
        return self.linear.delegate(issue, self.apps[agent or self.agents[0]], self.ann)

    def wait_status(self, session: LinearSession, *statuses: str) -> None:
        """Wait until Linear shows a session in one of these states."""
        self.linear.wait(lambda: session.status in statuses)

    def wait_end(self, session: LinearSession, answers: int = 1) -> None:
        """Wait until an agent has answered so many times."""
        self.linear.wait(lambda: len(session.of_type("response", "error")) >= answers)

    def turns(self) -> int:
        """Count the turns that there ever were."""
        return int(self.bridge.rows("select count(*) from turn")[0][0])
