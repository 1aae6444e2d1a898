"""What the simulated GitHub holds: accounts, Apps, repositories, issues, and their JSON.

The fields carry GitHub's own names; whoever reads them cannot tell the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

PERMISSIONS = ("none", "read", "triage", "write", "maintain", "admin")
ACTIONS = "github-actions"
"""The App that runs workflows."""
LEGACY = {"triage": "read", "maintain": "write"}
"""What GitHub still calls the roles that came later."""

_numbers = itertools.count(1001)


def new_number() -> int:
    """Give out a number that nothing else has."""
    return next(_numbers)


def stamp(at: float) -> str:
    """Write a time as GitHub does, though to the microsecond: a story takes less than a second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass
class Account:
    """A person, a bot or an organisation."""

    login: str
    type: str = "User"
    id: int = field(default_factory=new_number)

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        return {
            "login": self.login,
            "id": self.id,
            "node_id": f"U_{self.id}",
            "type": self.type,
            "site_admin": False,
        }


@dataclass
class App:
    """A GitHub App."""

    slug: str
    secret: str
    hook_url: str
    private_pem: str
    public_pem: str
    owner: Account
    permissions: dict[str, str]
    events: tuple[str, ...]
    id: int = field(default_factory=new_number)
    public: bool = False
    """Whether anybody can install it."""
    bot: Account = field(init=False)

    def __post_init__(self) -> None:
        self.bot = Account(f"{self.slug}[bot]", "Bot")

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        return {
            "id": self.id,
            "slug": self.slug,
            "name": self.slug,
            "owner": self.owner.json(),
            "permissions": self.permissions,
            "events": list(self.events),
            "html_url": f"https://github.example/apps/{self.slug}",
        }


@dataclass
class Installation:
    """Where an App was installed, and what it may do there."""

    app: App
    account: Account
    repositories: set[int]
    id: int = field(default_factory=new_number)
    suspended: bool = False

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        return {
            "id": self.id,
            "app_id": self.app.id,
            "app_slug": self.app.slug,
            "account": self.account.json(),
            "permissions": self.app.permissions,
            "events": list(self.app.events),
            "repository_selection": "selected",
            "suspended_at": stamp(0) if self.suspended else None,
        }


@dataclass
class Token:
    """A token of an installation."""

    value: str
    installation: Installation
    repositories: set[int]
    permissions: dict[str, str]
    until: float


@dataclass
class Comment:
    """A comment in a conversation, or on a line of a diff."""

    user: Account
    body: str
    at: float
    id: int = field(default_factory=new_number)
    changed: float = 0.0
    edits: int = 0
    history: list[str] = field(default_factory=list)
    """What it said before each edit, which every reader can see."""
    reactions: list[tuple[str, str]] = field(default_factory=list)
    """Who, and with what."""
    app: App | None = None
    path: str = ""
    line: int | None = None
    start_line: int | None = None
    hunk: str = ""
    review: int | None = None
    reply_to: int | None = None
    commit: str = ""
    """The head of the pull request when a line was commented on."""
    minimized: str = ""
    """Why it is hidden from readers, if it is."""
    resolved_by: str = ""
    """Who resolved the thread that it begins."""

    @property
    def node_id(self) -> str:
        """How GraphQL calls it."""
        return f"C_{self.id}"

    def json(self, issue: Issue) -> dict[str, Any]:
        """Show it as GitHub does."""
        shown = {
            "id": self.id,
            "node_id": self.node_id,
            "html_url": f"{issue.url}#comment-{self.id}",
            "user": self.user.json(),
            "body": self.body,
            "created_at": stamp(self.at),
            "updated_at": stamp(self.changed or self.at),
            "author_association": "NONE",
            "performed_via_github_app": self.app.json() if self.app else None,
        }
        if not self.path:
            return shown
        return shown | {
            "path": self.path,
            "line": self.line,
            "original_line": self.line,
            "start_line": self.start_line,
            "side": "RIGHT",
            "diff_hunk": self.hunk,
            "pull_request_review_id": self.review,
            **({"in_reply_to_id": self.reply_to} if self.reply_to is not None else {}),
        }


@dataclass
class Review:
    """A review that was submitted; its state is in capitals in the API, and small in events."""

    user: Account
    body: str | None
    state: str
    at: float
    commit: str = ""
    id: int = field(default_factory=new_number)

    def json(self, issue: Issue) -> dict[str, Any]:
        """Show it as GitHub does."""
        return {
            "id": self.id,
            "user": self.user.json(),
            "body": self.body,
            "state": self.state,
            "commit_id": self.commit,
            "html_url": f"{issue.url}#pullrequestreview-{self.id}",
            "submitted_at": stamp(self.at),
        }


@dataclass
class Check:
    """A check run on a commit."""

    app: App | None
    """Whose it is; None: of the service that runs workflows."""
    name: str
    sha: str
    at: float
    status: str = "queued"
    conclusion: str | None = None
    output: dict[str, Any] = field(default_factory=dict)
    actions: list[dict[str, str]] = field(default_factory=list)
    external_id: str = ""
    log: str = ""
    """What it wrote, if it is a job of a workflow."""
    suite: int = 0
    id: int = field(default_factory=new_number)

    @property
    def buttons(self) -> list[dict[str, str]]:
        """The actions that people see: those of a completed run."""
        return self.actions if self.status == "completed" else []

    @property
    def annotations(self) -> list[dict[str, Any]]:
        """What it says about lines of files."""
        return list(self.output.get("annotations", ()))

    def json(self, repository: Repository) -> dict[str, Any]:
        """Show it as GitHub does."""
        output = {name: self.output.get(name) for name in ("title", "summary", "text")}
        app = self.app.json() if self.app else {"id": 15368, "slug": ACTIONS, "name": "Workflows"}
        return {
            "id": self.id,
            "name": self.name,
            "head_sha": self.sha,
            "external_id": self.external_id,
            "status": self.status,
            "conclusion": self.conclusion,
            "html_url": f"https://github.example/{repository.full_name}/runs/{self.id}",
            "output": output | {"annotations_count": len(self.annotations)},
            "check_suite": {"id": self.suite},
            "app": app,
            "started_at": stamp(self.at),
        }


@dataclass
class Status:
    """What a service says about a commit; of one context the latest counts."""

    context: str
    state: str
    description: str | None = None
    target_url: str | None = None
    sha: str = ""
    id: int = field(default_factory=new_number)

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        names = ("id", "state", "context", "description", "target_url")
        return {name: getattr(self, name) for name in names}


@dataclass
class Pull:
    """What makes an issue a pull request."""

    head: str
    base: str
    head_repository: Repository
    sha: str
    reviews: list[Review] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    merged: bool = False
    closed: float = 0.0


@dataclass
class Issue:
    """An issue, or a pull request."""

    repository: Repository
    number: int
    title: str
    body: str | None
    user: Account
    at: float
    id: int = field(default_factory=new_number)
    changed: float = 0.0
    state: str = "open"
    locked: bool = False
    labels: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[tuple[str, str]] = field(default_factory=list)
    pull: Pull | None = None
    subscribed: set[str] = field(default_factory=set)
    """Who took part or was mentioned, by small login: they hear of every new comment."""

    @property
    def url(self) -> str:
        """Where people read it."""
        kind = "pull" if self.pull else "issues"
        return f"https://github.example/{self.repository.full_name}/{kind}/{self.number}"

    def json(self) -> dict[str, Any]:
        """Show it as an issue, as GitHub does."""
        shown = self._common() | {"comments": len(self.comments)}
        if self.pull:
            shown["pull_request"] = {"html_url": self.url}
        return shown

    def pull_json(self) -> dict[str, Any]:
        """Show it as a pull request, as GitHub does."""
        pull = self.pull
        assert pull is not None
        head, base = pull.head_repository, self.repository
        return self._common() | {
            "head": _end(head, pull.head, pull.sha),
            "base": _end(base, pull.base, ""),
            "merged": pull.merged,
            "closed_at": stamp(pull.closed) if pull.closed else None,
            "draft": False,
        }

    def _common(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "number": self.number,
            "title": self.title,
            "body": self.body,
            "user": self.user.json(),
            "html_url": self.url,
            "state": self.state,
            "locked": self.locked,
            "labels": [{"name": name} for name in self.labels],
            "created_at": stamp(self.at),
            "updated_at": stamp(self.changed or self.at),
        }


@dataclass
class Repository:
    """A repository: its people and its issues; what is in it is git's."""

    owner: Account
    name: str
    private: bool = False
    id: int = field(default_factory=new_number)
    people: dict[str, str] = field(default_factory=dict)
    """Role by login; everybody else may read, unless it is private."""
    issues: dict[int, Issue] = field(default_factory=dict)
    forked_from: Repository | None = None
    checks: list[Check] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    workflows: tuple[str, ...] = ()
    """Jobs that begin when a pull request is opened."""
    archived: bool = False
    protected: set[str] = field(default_factory=set)
    """Branches that nobody pushes to directly."""
    signed: bool = False
    """Whether a rule wants every pushed commit to be signed."""
    suites: dict[tuple[int, str], int] = field(default_factory=dict)
    """The suites that people asked for again and that are queued since, by App and commit."""
    pushed: float = 0.0
    """When somebody last pushed to it."""

    @property
    def full_name(self) -> str:
        """How people call it."""
        return f"{self.owner.login}/{self.name}"

    def role(self, account: Account) -> str:
        """Tell what somebody may do in it; bots are nobody here."""
        if account.type == "Bot":
            return "none"
        return self.people.get(account.login.lower(), "none" if self.private else "read")

    def comments(self) -> Iterator[tuple[Issue, Comment]]:
        """List everything said in its conversations."""
        for issue in self.issues.values():
            yield from ((issue, comment) for comment in issue.comments)

    def line_comments(self) -> Iterator[tuple[Issue, Comment]]:
        """List everything said on lines of its diffs."""
        for issue in self.issues.values():
            yield from ((issue, each) for each in (issue.pull.comments if issue.pull else ()))

    def json(self) -> dict[str, Any]:
        """Show it as GitHub does."""
        return {
            "id": self.id,
            "name": self.name,
            "full_name": self.full_name,
            "private": self.private,
            "owner": self.owner.json(),
            "html_url": f"https://github.example/{self.full_name}",
            "default_branch": "main",
            "fork": self.forked_from is not None,
            "archived": self.archived,
            "disabled": False,
            "pushed_at": stamp(self.pushed),
        }


def _end(repository: Repository, ref: str, sha: str) -> dict[str, Any]:
    return {
        "label": f"{repository.owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": repository.owner.json(),
        "repo": repository.json(),
    }
