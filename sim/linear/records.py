"""What the simulated Linear holds: users, apps, issues, comments, sessions, activities."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

_REPOSITORY = re.compile(r"^https?://[^/]+/(?:.*/)?([^/]+/[^/]+)$")


@dataclass(slots=True)
class Person:
    """A user of the workspace; apps are users too."""

    id: str
    name: str
    guest: bool = False
    app: bool = False
    active: bool = True

    def child(self) -> dict[str, Any]:
        """Show it as a webhook does."""
        name = self.name.lower()
        return {
            "id": self.id,
            "name": self.name,
            "email": f"{name}@example.com",
            "url": f"https://linear.app/acme/profiles/{name}",
        }


@dataclass(slots=True)
class App:
    """One OAuth application with actor=app: an agent."""

    user: Person
    client_id: str
    client_secret: str
    webhook_secret: str
    webhook_url: str = ""
    hook_enabled: bool = True
    """Whether events are sent; only an admin turns a hook on that failed too often."""
    hook_failures: int = 0
    """How many deliveries in a row were not answered with 200."""
    tokens: dict[str, float] = field(default_factory=dict)
    """Tokens, and when each expires."""
    minted: str = ""
    """The one that it got for its own credentials."""
    credentials: bool = True
    """Whether it gets one for them."""
    callbacks: list[str] = field(default_factory=list)
    """Where people may be sent back to."""
    scope: str = "read,write,app:assignable,app:mentionable"


@dataclass(slots=True)
class Comment:
    """What stands below an issue."""

    id: str
    body: str
    user: Person | None
    created_at: float
    thread: Comment | None = None
    """The comment that it replies to."""

    def child(self, issue: Issue) -> dict[str, Any]:
        """Show it as a webhook does."""
        author = self.user.id if self.user else None
        return {"id": self.id, "body": self.body, "userId": author, "issueId": issue.id}


@dataclass(slots=True)
class State:
    """One column of a team's board."""

    id: str
    name: str
    type: str
    position: float


@dataclass(slots=True)
class Issue:
    """One issue of the one team, ENG."""

    id: str
    number: int
    title: str
    description: str
    state: State
    parent: Issue | None = None
    delegate: Person | None = None
    assignee: Person | None = None
    creator: Person | None = None
    """Who wrote it; an integration did if nobody is named."""
    comments: list[Comment] = field(default_factory=list)
    attachments: dict[str, str] = field(default_factory=dict)
    """What is attached, by title: an address each."""

    @property
    def identifier(self) -> str:
        """The name that people use."""
        return f"ENG-{self.number}"

    @property
    def url(self) -> str:
        """Where people read it."""
        return f"https://linear.app/acme/issue/{self.identifier}"


@dataclass(slots=True)
class Activity:
    """One activity, by an agent or by a person."""

    id: str
    user: Person
    content: dict[str, Any]
    created_at: float
    ephemeral: bool = False
    signal: str | None = None
    signal_metadata: dict[str, Any] | None = None

    @property
    def type(self) -> str:
        """Which kind it is."""
        return str(self.content["type"])

    @property
    def body(self) -> str:
        """What it says, if it says something."""
        return str(self.content.get("body", ""))


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a session is about that is about no issue: a pull request, a document or a project."""

    kind: str
    title: str
    text: str = ""
    url: str = "https://linear.app/acme/somewhere"


@dataclass(slots=True)
class LinearSession:
    """One agent session, with every activity there ever was."""

    id: str
    app: App
    issue: Issue
    creator: Person | None
    comment: Comment
    created_at: float
    updated_at: float
    source: Comment | None = None
    """Where the agent was mentioned, if that was in a thread of its own."""
    status: str = "pending"
    activities: list[Activity] = field(default_factory=list)
    plan: list[dict[str, str]] = field(default_factory=list)
    urls: list[dict[str, str]] = field(default_factory=list)
    dismissed_at: float | None = None
    stopping: bool = False
    """Whether somebody pressed stop since the last words."""
    stopped: bool = False
    """Whether the agent confirmed it: nothing may follow until somebody says something."""
    answered_at: float | None = None
    """When the agent was first heard of."""
    anchor: Anchor | None = None
    """What it is about instead of its issue, which then only holds its comments."""

    def of_type(self, *types: str) -> list[Activity]:
        """List its activities of some types."""
        return [activity for activity in self.activities if activity.type in types]

    @property
    def visible(self) -> list[Activity]:
        """What people see: ephemeral ones only until something follows."""
        last = len(self.activities) - 1
        return [a for at, a in enumerate(self.activities) if not a.ephemeral or at == last]

    @property
    def buttons(self) -> dict[str, str]:
        """What the buttons of the last question show, and what each says when it is pressed.

        Only the value is documented: it is what people read. That of a repository is its address,
        of which they read the name.
        """
        metadata = self.of_type("elicitation")[-1].signal_metadata or {}
        values = [option["value"] for option in metadata.get("options", [])]
        return {_REPOSITORY.sub(r"\1", value): value for value in values}

    @property
    def response(self) -> str:
        """What the agent answered; there is one answer."""
        (answer,) = self.of_type("response")
        return answer.body


def new_id() -> str:
    """Make an id as Linear does."""
    return str(uuid.uuid4())


def moment(seconds: float) -> str:
    """Write a time as Linear does."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
