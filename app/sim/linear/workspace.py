"""The state of the simulated Linear and the rules by which it changes.

It refuses what Linear refuses: content of another shape, ids that are no UUID v4 or were used
before, what is another app's. What an agent should not do, but can, is noted as a fault.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

FIRST_ACTIVITY_SECONDS: Final = 10.0
"""After that Linear shows a new session as unresponsive."""
STALE_SECONDS: Final = 30 * 60.0
"""After that without a word Linear shows a session as stale."""

_REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "thought": frozenset({"body"}),
    "action": frozenset({"action", "parameter"}),
    "elicitation": frozenset({"body"}),
    "response": frozenset({"body"}),
    "error": frozenset({"body"}),
}
_OPTIONAL: Final[Mapping[str, frozenset[str]]] = {"action": frozenset({"result"})}
_STATUS: Final = {"elicitation": "awaitingInput", "response": "complete", "error": "error"}
_PLAN_STATES: Final = {"pending", "inProgress", "completed", "canceled"}


class LinearRefusal(Exception):
    """What Linear answers instead of doing something."""

    def __init__(self, message: str, code: str = "INPUT_ERROR") -> None:
        self.code = code
        super().__init__(message)


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
    tokens: dict[str, float] = field(default_factory=dict)
    """Tokens, and when each expires."""
    scope: str = "read,write,app:assignable,app:mentionable"


@dataclass(slots=True)
class Comment:
    """What stands below an issue."""

    id: str
    body: str
    user: Person | None

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
    delegate: Person | None = None
    assignee: Person | None = None
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

    def of_type(self, *types: str) -> list[Activity]:
        """List its activities of some types."""
        return [activity for activity in self.activities if activity.type in types]

    @property
    def visible(self) -> list[Activity]:
        """What people see: ephemeral ones only until something follows."""
        last = len(self.activities) - 1
        return [a for at, a in enumerate(self.activities) if not a.ephemeral or at == last]

    @property
    def response(self) -> str:
        """What the agent answered; there is one answer."""
        (answer,) = self.of_type("response")
        return answer.body


class Workspace:
    """One organisation with one team."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.id = new_id()
        self.team_id = new_id()
        self.people: dict[str, Person] = {}
        self.apps: dict[str, App] = {}
        self.issues: dict[str, Issue] = {}
        self.sessions: dict[str, LinearSession] = {}
        self.duplicate_code = "INPUT_ERROR"
        """What an id that was used before is refused with; nobody has published that."""
        self.faults: list[str] = []
        """What an agent did although it should not."""
        names = ("backlog", "unstarted", "started", "started", "completed", "canceled")
        self.states = [
            State(new_id(), f"{name} {at}", name, float(10 - at)) for at, name in enumerate(names)
        ]

    def state(self, type_: str) -> State:
        """Find the first state of a type, as the board shows them."""
        return min((s for s in self.states if s.type == type_), key=lambda s: s.position)

    def person(self, person_id: str) -> Person:
        """Find a user.

        Raises:
            LinearRefusal: there is none.
        """
        if person_id not in self.people:
            raise LinearRefusal("Entity not found: User")
        return self.people[person_id]

    def session(self, session_id: str) -> LinearSession:
        """Find a session.

        Raises:
            LinearRefusal: there is none.
        """
        if session_id not in self.sessions:
            raise LinearRefusal("Entity not found: AgentSession")
        return self.sessions[session_id]

    def owned(self, session_id: str, app: App) -> LinearSession:
        """Find a session that an app may write to.

        Raises:
            LinearRefusal: there is none, or it is another's.
        """
        session = self.session(session_id)
        if session.app is not app:
            raise LinearRefusal("You can only update agent sessions of your own app", "FORBIDDEN")
        return session

    def activity(self, activity_id: str) -> tuple[LinearSession, Activity]:
        """Find an activity.

        Raises:
            LinearRefusal: there is none.
        """
        for session in self.sessions.values():
            for activity in session.activities:
                if activity.id == activity_id:
                    return session, activity
        raise LinearRefusal("Entity not found: AgentActivity")

    def status(self, session: LinearSession) -> str:
        """Tell how people see a session now."""
        silent = self.now() - session.updated_at
        if session.status in {"pending", "active"} and silent > STALE_SECONDS:
            return "stale"
        return session.status

    def is_unresponsive(self, session: LinearSession) -> bool:
        """Tell whether an agent was not heard of in time after its session was created."""
        heard = self.now() if session.answered_at is None else session.answered_at
        return heard - session.created_at > FIRST_ACTIVITY_SECONDS

    def act(self, app: App, given: Mapping[str, Any]) -> Activity:
        """Take an activity of an agent.

        Raises:
            LinearRefusal: it is not as Linear wants it.
        """
        session = self.owned(given["agentSessionId"], app)
        content = given["content"]
        ephemeral = bool(given.get("ephemeral"))
        check_content(content, ephemeral=ephemeral)
        signal, metadata = given.get("signal"), given.get("signalMetadata")
        check_signal(content["type"], signal, metadata)
        name = given.get("id") or new_id()
        self._check_id(name)
        if session.stopped:
            self.faults.append(f"something further after stop: {content}")
        activity = Activity(name, app.user, content, self.now(), ephemeral, signal, metadata)
        session.activities.append(activity)
        session.status = _STATUS.get(activity.type, "active")
        session.stopped = session.stopping and activity.type in {"response", "error"}
        self._heard_of(session)
        if activity.type == "response":
            session.issue.comments.append(Comment(new_id(), activity.body, app.user))
        return activity

    def update(self, app: App, session_id: str, given: Mapping[str, Any]) -> LinearSession:
        """Change plan and links of a session.

        Raises:
            LinearRefusal: they are not as Linear wants them.
        """
        session = self.owned(session_id, app)
        if session.stopped:
            self.faults.append(f"an update after stop: {given}")
        if "plan" in given:
            session.plan = checked_plan(given["plan"])
        session.urls = list(given.get("externalUrls", session.urls))
        session.urls += given.get("addedExternalUrls", [])
        if "externalUrls" in given or "addedExternalUrls" in given:
            self._heard_of(session)
        return session

    def update_issue(self, issue_id: str, given: Mapping[str, Any]) -> Issue:
        """Move an issue or give it to an agent.

        Raises:
            LinearRefusal: there is no such state or agent.
        """
        if issue_id not in self.issues:
            raise LinearRefusal("Entity not found: Issue")
        issue = self.issues[issue_id]
        if "stateId" in given:
            found = [state for state in self.states if state.id == given["stateId"]]
            if not found:
                raise LinearRefusal("Entity not found: WorkflowState")
            issue.state = found[0]
        if "delegateId" in given:
            delegate = self.people.get(given["delegateId"] or "")
            if delegate is None or not delegate.app:
                raise LinearRefusal("The delegate must be an app user")
            issue.delegate = delegate
        return issue

    def _check_id(self, name: str) -> None:
        try:
            version = uuid.UUID(name).version
        except ValueError:
            version = None
        if version != 4:
            raise LinearRefusal("id must be a UUID")
        if any(a.id == name for s in self.sessions.values() for a in s.activities):
            raise LinearRefusal("An entity with this id already exists", self.duplicate_code)

    def _heard_of(self, session: LinearSession) -> None:
        session.updated_at = self.now()
        if session.answered_at is None:
            session.answered_at = self.now()


def check_content(content: Any, *, ephemeral: bool) -> None:
    """Refuse content of another shape than the published one.

    Raises:
        LinearRefusal: it is.
    """
    kind = str(content.get("type")) if isinstance(content, dict) else "none"
    if kind not in _REQUIRED:
        raise LinearRefusal(f"content.type {kind!r} is not one that agents may create")
    given = set(content) - {"type"}
    if not _REQUIRED[kind] <= given <= _REQUIRED[kind] | _OPTIONAL.get(kind, frozenset()):
        raise LinearRefusal(f"content of type {kind} has the fields {sorted(given)}")
    if not all(isinstance(content[name], str) for name in given):
        raise LinearRefusal(f"content of type {kind} must be made of text")
    if not content[min(_REQUIRED[kind])].strip():
        raise LinearRefusal(f"content of type {kind} is empty")
    if ephemeral and kind not in {"thought", "action"}:
        raise LinearRefusal("only thoughts and actions may be ephemeral")


def check_signal(kind: str, signal: str | None, metadata: Any) -> None:
    """Refuse a signal that agents may not give, or not like that.

    Raises:
        LinearRefusal: it is one.
    """
    if signal is None:
        return
    if kind != "elicitation" or signal not in {"select", "auth"}:
        raise LinearRefusal(f"the signal {signal} is not for agents' activities of type {kind}")
    if signal == "select":
        options = (metadata or {}).get("options")
        if not options or any(set(option) != {"label", "value"} for option in options):
            raise LinearRefusal("select needs options with label and value")


def checked_plan(plan: Any) -> list[dict[str, str]]:
    """Refuse a plan that is no list of steps.

    Raises:
        LinearRefusal: it is none.
    """
    right = isinstance(plan, list) and all(
        isinstance(step, dict)
        and set(step) == {"content", "status"}
        and step["status"] in _PLAN_STATES
        for step in plan
    )
    if not right:
        raise LinearRefusal("plan must be a list of steps with content and status")
    return list(plan)


def new_id() -> str:
    """Make an id as Linear does."""
    return str(uuid.uuid4())


def moment(seconds: float) -> str:
    """Write a time as Linear does."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
