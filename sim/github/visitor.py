"""Puts a person at a terminal into a repository of the simulated GitHub."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sim.github.state import Issue
from sim.github.world import SimulatedGithub

_HIDDEN: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@contextmanager
def visit(agents: Sequence[str], bridge: str) -> Iterator[GithubVisitor]:
    """Start a GitHub with one repository and an App for each agent."""
    with tempfile.TemporaryDirectory() as folder, SimulatedGithub(Path(folder)) as github:
        yield GithubVisitor(github, agents, bridge)


class GithubVisitor:
    """Ann, who may write to one repository, and an App for each agent."""

    a_thread = "an issue"

    def __init__(self, github: SimulatedGithub, agents: Sequence[str], bridge: str) -> None:
        self._github = github
        self._bridge = bridge.rstrip("/")
        self._repository = github.repository("acme/widgets", {"ann": "write"})
        hooks = f"{self._bridge}/webhooks/github"
        self._apps = {name: github.app(name, f"{hooks}/{name}") for name in agents}
        for app in self._apps.values():
            github.install(app, self._repository)
        self._issue: Issue | None = None

    @property
    def changed(self) -> threading.Condition:
        """The platform's lock, which signals every change."""
        return self._github.changed

    def settings(self) -> Iterator[str]:
        """Yield the settings that a bridge needs, one line each."""
        yield f"GITHUB_API_URL={self._github.api_url}"
        yield f"GITHUB_GIT_URL={self._github.url}"
        yield f"GITHUB_WEB_URL={self._github.url}"
        for name, app in self._apps.items():
            suffix = name.upper().replace("-", "_")
            key = app.private_pem.replace("\n", r"\n")
            yield f"GITHUB_APP_ID__{suffix}={app.id}"
            yield f'GITHUB_PRIVATE_KEY__{suffix}="{key}"'
            yield f"GITHUB_WEBHOOK_SECRET__{suffix}={app.secret}"

    def start(self, words: str) -> None:
        """Open an issue; the agent that it mentions takes it."""
        title = words.removeprefix("@").partition(" ")[2] if words.startswith("@") else words
        self._issue = self._github.open_issue("ann", self._repository, title or words, words)

    def reply(self, words: str) -> bool:
        """Comment on the last issue; false if there is none."""
        if self._issue is None:
            return False
        self._github.comment("ann", self._issue, words)
        return True

    def press(self, label: str) -> bool:
        """Press the newest button of a check with this label; false if there is none."""
        for run in reversed(self._repository.checks):
            if label in [each["label"] for each in run.buttons]:
                self._github.press("ann", self._repository, run, label)
                return True
        return False

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield the pull requests and comments of agents, their buttons, and lost webhooks."""
        bots = {app.bot.login: name for name, app in self._apps.items()}
        for issue in self._repository.issues.values():
            if issue.user.login in bots:
                opened = f"{bots[issue.user.login]} opened #{issue.number}: {issue.title}"
                yield f"opened {issue.number}", opened
            for said in (*issue.comments, *(issue.pull.comments if issue.pull else ())):
                if said.user.login in bots and not said.minimized:
                    words = _HIDDEN.sub("", said.body).strip()
                    where = f"{bots[said.user.login]} on #{issue.number}"
                    yield f"comment {said.id}", f"{where}: {words}"
        for run in self._repository.checks:
            if run.buttons:
                offered = " ".join(f"[{each['label']}]" for each in run.buttons)
                yield f"check {run.id}", f"{run.name}: {offered}"
        for attempt in self._github.hooks.log:
            if attempt.status >= 300:
                answer = f"{self._bridge} answered a webhook with {attempt.status}"
                yield f"hook {attempt.id}", f"{answer}: does the bridge run there?"
