"""What people and services do on the simulated GitHub, each by one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.github.hooks import Event
from sim.github.records import LineWords, Records
from sim.github.state import (
    App,
    Check,
    Comment,
    Issue,
    Repository,
    Review,
    Status,
    new_number,
)

BRANCHES_OF_STATUS = 10
"""How many branches that hold a commit are named with its status."""


class People(Records):
    """All that is there, in the hands of people."""

    def open_issue(self, login: str, repository: Repository, title: str, body: str = "") -> Issue:
        """Open an issue."""
        with self.changed:
            issue = self._new_issue(repository, self.account(login), title, body)
            self.emit("issues", "opened", repository, issue.user, {"issue": issue.json()})
        return issue

    def comment(self, login: str, issue: Issue, body: str) -> Comment:
        """Say something in a conversation."""
        return self.add_comment(issue, self.account(login), body, None)

    def edit_comment(self, login: str, issue: Issue, comment: Comment, body: str) -> None:
        """Change what somebody said; whoever may write to the repository can."""
        self.change_comment(issue, comment, self.account(login), body)

    def delete_comment(self, login: str, issue: Issue, comment: Comment) -> None:
        """Take a comment away; a review of which nothing is left goes with it."""
        self.remove_comment(issue, comment, self.account(login))

    def edit_issue(self, login: str, issue: Issue, body: str) -> None:
        """Change what an issue says."""
        with self.changed:
            before = {"changes": {"body": {"from": issue.body or ""}}}
            issue.body, issue.changed = body, self.now()
            kind, shown = self._shown(issue)
            self.emit(kind, "edited", issue.repository, self.account(login), shown | before)

    def label(self, login: str, issue: Issue, name: str) -> None:
        """Put a label on an issue."""
        with self.changed:
            issue.labels.append(name)
            issue.changed = self.now()
            kind, shown = self._shown(issue)
            parts = shown | {"label": {"name": name}}
            self.emit(kind, "labeled", issue.repository, self.account(login), parts)

    def open_pull(
        self,
        login: str,
        repository: Repository,
        title: str,
        head: str,
        body: str = "",
        *,
        base: str = "main",
    ) -> Issue:
        """Open a pull request."""
        return self.add_pull(repository, self.account(login), title, body, head, base)

    def push(
        self, login: str, repository: Repository, branch: str, files: Mapping[str, str]
    ) -> str:
        """Commit to a branch and push it."""
        before = self.git.branches(repository.full_name)
        commit = self.git.commit(repository.full_name, branch, files, "Change")
        self.pushed(repository, before, self.account(login))
        return commit

    def close_pull(self, login: str, issue: Issue, *, merge: bool = False) -> None:
        """Close a pull request, or merge it."""
        pull, repository = issue.pull, issue.repository
        assert pull is not None
        with self.changed:
            before = self.git.branches(repository.full_name)
            if merge:
                self.git.merge(repository.full_name, pull.base, pull.sha)
            issue.state, pull.merged, pull.closed = "closed", merge, self.now()
            parts = {"pull_request": issue.pull_json()}
            self.emit("pull_request", "closed", repository, self.account(login), parts)
            self.pushed(repository, before, self.account(login))

    def reopen_pull(self, login: str, issue: Issue) -> None:
        """Open a pull request again."""
        assert issue.pull is not None
        with self.changed:
            issue.state, issue.pull.closed = "open", 0.0
            parts = {"pull_request": issue.pull_json()}
            self.emit("pull_request", "reopened", issue.repository, self.account(login), parts)

    def press(self, login: str, repository: Repository, run: Check, label: str) -> None:
        """Press a button of a check; GitHub shows the buttons of completed runs only."""
        (action,) = [each for each in run.buttons if each["label"] == label]
        parts = {"requested_action": {"identifier": action["identifier"]}}
        self._tell_owner("requested_action", login, repository, run, parts)

    def rerun(self, login: str, repository: Repository, run: Check) -> None:
        """Press "Re-run" of a check; its suite is queued until its App answers."""
        assert run.app is not None
        repository.suites[run.app.id, run.sha] = new_number()
        self._tell_owner("rerequested", login, repository, run, {})

    def rerun_all(self, login: str, repository: Repository, app: App, sha: str) -> None:
        """Press "Re-run all checks" of an App; its suite is queued until it answers."""
        with self.changed:
            number = repository.suites[app.id, sha] = new_number()
            suite = {
                "id": number,
                "head_branch": None,
                "head_sha": sha,
                "status": "queued",
                "conclusion": None,
                "app": app.json(),
            }
            parts = {"action": "rerequested", "check_suite": suite}
            self._tell_app(app, "check_suite", login, repository, parts)

    def _tell_owner(
        self, action: str, login: str, repository: Repository, run: Check, parts: dict[str, Any]
    ) -> None:
        """Tell the App of a check what was done to it; no other App hears of that."""
        assert run.app is not None
        whole = parts | {"action": action, "check_run": run.json(repository)}
        with self.changed:
            self._tell_app(run.app, "check_run", login, repository, whole)

    def _tell_app(
        self, app: App, kind: str, login: str, repository: Repository, parts: dict[str, Any]
    ) -> None:
        about = {"repository": repository.json(), "sender": self.account(login).json()}
        for installation in self.installations:
            mine = installation.app is app and repository.id in installation.repositories
            if mine and kind in app.events:
                whole = parts | about | {"installation": {"id": installation.id}}
                self.hooks.emit(Event(app, kind, whole))

    def check(self, issue: Issue, *runs: Check) -> None:
        """Let workflows end on the head of a pull request."""
        pull, repository = issue.pull, issue.repository
        assert pull is not None
        with self.changed:
            suite = new_number()
            for run in runs:
                run.suite, run.sha = suite, pull.sha
                self._replace_check(repository, run)
            worst = next((run for run in runs if run.conclusion != "success"), runs[0])
            shown = {
                "id": suite,
                "head_branch": pull.head if pull.head_repository is repository else None,
                "head_sha": pull.sha,
                "status": "completed",
                "conclusion": worst.conclusion,
                "pull_requests": [{"number": issue.number}],
                "app": runs[0].json(repository)["app"],
            }
            sender = self.account("workflows[bot]", "Bot")
            self.emit("check_suite", "completed", repository, sender, {"check_suite": shown})

    def report(self, issue: Issue, status: Status) -> None:
        """Let a service say something about the head of a pull request."""
        pull, repository = issue.pull, issue.repository
        assert pull is not None
        with self.changed:
            status.sha = pull.sha
            same = (status.context, status.sha)
            others = [e for e in repository.statuses if (e.context, e.sha) != same]
            repository.statuses = [*others, status]
            holding = self.git.branches(repository.full_name, holding=pull.sha)
            branches = [
                {"name": name, "commit": {"sha": sha}, "protected": False}
                for name, sha in holding.items()
            ]
            about = {"sha": pull.sha, "name": repository.full_name}
            parts = status.json() | about | {"branches": branches[:BRANCHES_OF_STATUS]}
            self.emit("status", "", repository, self.account("ci-service"), parts)

    def review(
        self,
        login: str,
        issue: Issue,
        body: str | None,
        *lines: tuple[str, int, str],
        state: str = "commented",
    ) -> Review:
        """Review a pull request, with comments on lines of its diff."""
        said = [LineWords(*each) for each in lines]
        return self.add_review(issue, self.account(login), body, said, state)

    def _replace_check(self, repository: Repository, run: Check) -> None:
        """Keep a check; of those with one name and App only the latest counts."""
        same = (run.app, run.name, run.sha)
        others = [e for e in repository.checks if (e.app, e.name, e.sha) != same]
        repository.checks = [*others, run]
