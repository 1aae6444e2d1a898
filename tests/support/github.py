"""People on the simulated GitHub, and a bridge whose agents have an App each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sim.github.state import App, Comment, Installation, Issue, Repository
from sim.github.world import SimulatedGithub
from tests.support.bridge import SECONDS, SPEED, BridgeProcess, demo
from tests.support.platform import Platform

PROGRESS = "/progress -->"
"""Ends the comment that shows a turn until its answer is written."""
PEOPLE = {"ann": "write", "bob": "maintain", "cleo": "admin", "tim": "triage", "rae": "read"}


def credentials(github: SimulatedGithub, apps: Mapping[str, App]) -> dict[str, str]:
    """Write the settings of agents that have an App."""
    given = {
        "GITHUB_API_URL": github.api_url,
        "GITHUB_GIT_URL": github.url,
        "GITHUB_WEB_URL": github.url,
    }
    for name, app in apps.items():
        suffix = f"__{name.upper()}"
        given[f"GITHUB_APP_ID{suffix}"] = str(app.id)
        given[f"GITHUB_PRIVATE_KEY{suffix}"] = app.private_pem
        given[f"GITHUB_WEBHOOK_SECRET{suffix}"] = app.secret
    return given


@dataclass
class Hub:
    """A GitHub beside another service: one repository, and an App for each agent."""

    folder: Path
    agents: tuple[str, ...]

    def __post_init__(self) -> None:
        self.github = SimulatedGithub(self.folder / "github")
        self.apps: dict[str, App] = {}

    def __enter__(self) -> Self:
        self.github.__enter__()
        self.repository = self.github.repository("acme/widgets", PEOPLE)
        for name in self.agents:
            app = self.apps[name] = self.github.app(f"{name}-bridge", "")
            self.github.install(app, self.repository)
        return self

    def __exit__(self, *error: object) -> None:
        self.github.__exit__(*error)

    @property
    def settings(self) -> dict[str, str]:
        """What a bridge has to know of it."""
        return credentials(self.github, self.apps)

    def open_more(self, *names: str) -> None:
        """Let every App into further repositories of the same owner."""
        for name in names:
            made = self.github.repository(name, PEOPLE)
            for each in self.github.installations:
                each.repositories.add(made.id)

    def call(self, bridge: BridgeProcess) -> None:
        """Send webhooks to a bridge from now on."""
        for name, app in self.apps.items():
            app.hook_url = f"http://127.0.0.1:{bridge.port}/webhooks/github/{name}"

    def pulls(self) -> list[Issue]:
        """List the pull requests."""
        return [each for each in self.repository.issues.values() if each.pull]

    def file(self, pull: Issue, name: str) -> str:
        """Read a file as a pull request would have it."""
        assert pull.pull is not None
        branch = f"refs/heads/{pull.pull.head}"
        return self.github.git.git(self.repository.full_name, "show", f"{branch}:{name}")


@dataclass
class GithubWorld:
    """One simulated GitHub with one repository, and one bridge."""

    folder: Path
    agents: tuple[str, ...] = ("claude",)
    settings: dict[str, str] = field(default_factory=dict)
    private: bool = False
    speed: float = SPEED
    entry: dict[str, Any] = field(default_factory=dict)
    """How the agents differ from the usual."""

    def __post_init__(self) -> None:
        self.github = SimulatedGithub(self.folder / "github")
        self.repository: Repository
        self.apps: dict[str, App] = {}
        self.installations: dict[str, Installation] = {}
        self.platform = Platform()
        self.bridge = BridgeProcess(self.folder, self.platform, speed=self.speed)
        self.bridge.agents = {name: demo(**self.entry) for name in self.agents}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.github)
        self._stack.enter_context(self.platform)
        self.repository = self.github.repository("acme/widgets", PEOPLE, private=self.private)
        self.github.account("mallory")
        for name in self.agents:
            url = f"http://127.0.0.1:{self.bridge.port}/webhooks/github/{name}"
            app = self.apps[name] = self.github.app(f"{name}-bridge", url)
            self.installations[name] = self.github.install(app, self.repository)
        self.bridge.settings = {**credentials(self.github, self.apps), **self.settings}
        self._stack.enter_context(self.bridge)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def issue(self, body: str = "", title: str = "A bug", by: str = "ann") -> Issue:
        """Open an issue."""
        return self.github.open_issue(by, self.repository, title, body)

    def pull(self, by: str = "ann", branch: str = "topic", body: str = "") -> Issue:
        """Open a pull request that changes the README and adds a file."""
        files = {"README.md": "# A project\n\nOne.\nTwo, changed.\nThree.\n", "new.py": "a = 1\n"}
        self.github.git.commit(self.repository.full_name, branch, files, "Change things")
        return self.github.open_pull(by, self.repository, "A change", branch, body)

    def own_pull(self, agent: str = "claude", branch: str = "agent/claude/1") -> Issue:
        """Open a pull request as an agent's App."""
        return self.pull(self.apps[agent].bot.login, branch)

    def answers(self, issue: Issue, agent: str = "claude") -> list[Comment]:
        """List what an agent's App said on an issue, on lines too."""
        said = [*issue.comments, *(issue.pull.comments if issue.pull else ())]
        return [each for each in said if each.user is self.apps[agent].bot]

    def visible(self, issue: Issue, agent: str = "claude") -> list[Comment]:
        """List what an agent's App said and readers still see."""
        return [each for each in self.answers(issue, agent) if not each.minimized]

    def progress(self, issue: Issue, agent: str = "claude") -> Comment:
        """Wait until a comment shows the progress of a turn; returns it."""

        def found() -> list[Comment]:
            return [each for each in self.visible(issue, agent) if PROGRESS in each.body]

        self.github.wait(found)
        return found()[0]

    def wait_for(
        self, issue: Issue, words: str, agent: str = "claude", seconds: float = SECONDS
    ) -> Comment:
        """Wait until an agent's App says something, not only as progress; returns the comment."""

        def found() -> list[Comment]:
            said = [each for each in self.answers(issue, agent) if words in each.body]
            return [each for each in said if PROGRESS not in each.body]

        try:
            self.github.wait(found, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.bridge.log.read_text()[-4000:]}") from error
        return found()[0]

    def settled(self, also: Callable[[], bool] = lambda: True) -> None:
        """Wait until every webhook was sent and whatever it led to has come to its end."""
        self.github.quiet()
        query = """
            select (select count(*) from delivery where state = 'new')
                 + (select count(*) from turn
                    where state in ('queued', 'starting', 'prompted') and not held)
                 + (select count(*) from post where state in ('new', 'closing'))
        """
        self.bridge.wait(
            lambda: self.bridge.rows(query) == [(0,)] and also(), "something never came to its end"
        )

    def turns(self) -> int:
        """Count the turns that there ever were."""
        return int(self.bridge.rows("select count(*) from turn")[0][0])

    def prompts(self) -> list[str]:
        """List what agents were told, in order."""
        return [row[0] for row in self.bridge.rows("select prompt from turn order by id")]


class PullWorld(GithubWorld):
    """A world in which agents change the repository, and a person answers what they ask."""

    def asks(self) -> list[dict[str, Any]]:
        """List the asks that are open."""
        found = self.bridge.http.get("/api/v1/asks", params={"state": "open"}).json()["items"]
        return list(found)

    def allow(self) -> str:
        """Wait for an ask and allow it; returns what was asked."""
        return self.answer(0)

    def answer(self, option: int) -> str:
        """Wait for an ask and choose one of its options; returns what was asked."""
        self.bridge.wait(lambda: bool(self.asks()), "nothing was asked")
        (ask,) = self.asks()
        answer = {"option": ask["options"][option]["id"]}
        self.bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json=answer).raise_for_status()
        return f"{ask['title']}\n{ask['subject']}"

    def opened(self) -> Issue:
        """Wait for the pull request that an agent opened."""
        self.github.wait(self.pulls)
        return self.pulls()[0]

    def pulls(self) -> list[Issue]:
        """List the pull requests that the agent's App opened."""
        bots = {app.bot.login for app in self.apps.values()}
        found = self.repository.issues.values()
        return [each for each in found if each.pull and each.user.login in bots]

    def file(self, branch: str, name: str) -> str:
        """Read a file of a branch; empty if it is not there."""
        try:
            return self.github.git.git("acme/widgets", "show", f"refs/heads/{branch}:{name}")
        except subprocess.CalledProcessError:
            return ""
