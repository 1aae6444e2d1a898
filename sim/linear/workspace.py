"""The state of the simulated Linear and the rules by which it changes.

It refuses what Linear refuses: content of another shape, ids that are no UUID v4 or were used
before, what is another app's. What an agent should not do, but can, is noted as a fault.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.linear.records import (
    Activity,
    App,
    Comment,
    Issue,
    LinearSession,
    Person,
    State,
    new_id,
)
from sim.linear.rules import LinearRefusal, check_content, check_signal, checked_plan

FIRST_ACTIVITY_SECONDS: Final = 10.0
"""After that Linear shows a new session as unresponsive."""
STALE_SECONDS: Final = 30 * 60.0
"""After that without a word Linear shows a session as stale."""
THREAD: Final = "This thread is for an agent session with {}."
"""The comment that Linear itself puts above a session that did not begin with a comment."""
NOTIFYING: Final = frozenset({"response", "elicitation", "error"})
"""What Linear also puts into the comments, so that people hear of it; nothing else does."""

_STATUS: Final = {"elicitation": "awaitingInput", "response": "complete", "error": "error"}


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
        self.opened: list[LinearSession] = []
        """Sessions that apps opened by themselves, and that no webhook has told of yet."""
        self.likely: dict[str, float] = {}
        """Which repositories Linear takes its issues to be about, and how sure it is of each."""
        self.notified: list[tuple[Person, Activity]] = []
        """What reached whose inbox. Linear documents no more than that comments notify."""
        self.duplicate_code = "INPUT_ERROR"
        """What an id that was used before is refused with; nobody has published that."""
        self.longest = 100_000
        """How many characters an activity may hold; nobody has published that either."""
        self.faults: list[str] = []
        """What an agent did although it should not."""
        names = (
            "backlog",
            "unstarted",
            "started",
            "started",
            "completed",
            "canceled",
            "duplicate",
        )
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
        if max(map(len, content.values())) > self.longest:
            raise LinearRefusal("content is too long")
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
        if activity.type in NOTIFYING and session.creator is not None:
            self.notified.append((session.creator, activity))
        for person in self.people.values():
            # An address of a profile in a text is a mention.
            if person is not session.creator and person.child()["url"] in activity.body:
                self.notified.append((person, activity))
        if activity.type == "response":
            said = Comment(new_id(), activity.body, app.user, self.now(), session.comment)
            session.issue.comments.append(said)
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

    def open_session(self, app: App, given: Mapping[str, Any]) -> LinearSession:
        """Let an app open a session on an issue by itself; no person is responsible for it.

        Raises:
            LinearRefusal: there is no such issue.
        """
        issue, now = self.issue(given["issueId"]), self.now()
        root = Comment(new_id(), THREAD.format(app.user.name), None, now)
        issue.comments.append(root)
        session = LinearSession(new_id(), app, issue, None, root, now, now)
        session.urls = list(given.get("externalUrls", []))
        self.sessions[session.id] = session
        self.opened.append(session)
        return session

    def delete_comment(self, comment_id: str) -> None:
        """Delete a comment, and what a session below it said in comments.

        Raises:
            LinearRefusal: there is none.
        """
        for issue in self.issues.values():
            for comment in issue.comments:
                if comment.id == comment_id:
                    issue.comments = [
                        each for each in issue.comments if comment not in (each, each.thread)
                    ]
                    return
        raise LinearRefusal("Entity not found: Comment")

    def issue(self, issue_id: str) -> Issue:
        """Find an issue, by its id or by the name that people use.

        Raises:
            LinearRefusal: there is none.
        """
        for issue in self.issues.values():
            if issue_id in (issue.id, issue.identifier):
                return issue
        raise LinearRefusal("Entity not found: Issue")

    def update_issue(self, issue_id: str, given: Mapping[str, Any]) -> Issue:
        """Move an issue or give it to an agent.

        Raises:
            LinearRefusal: there is no such issue, state or agent.
        """
        issue = self.issue(issue_id)
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
