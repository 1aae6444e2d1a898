"""What people and automations do in the simulated Linear, and what Linear does thereupon."""

from __future__ import annotations

import threading

from sim.linear.hooks import Hooks
from sim.linear.records import (
    Activity,
    Anchor,
    App,
    Comment,
    Issue,
    LinearSession,
    Person,
    new_id,
)
from sim.linear.views import Views
from sim.linear.workspace import THREAD, Workspace


class People:
    """The workspace as those see it who work in it."""

    def __init__(self, workspace: Workspace, views: Views, hooks: Hooks) -> None:
        self.workspace = workspace
        self.hooks = hooks
        self.changed = threading.Condition()
        self._shown = views

    @property
    def faults(self) -> list[str]:
        """What agents did although they should not."""
        return self.workspace.faults

    def person(self, name: str, *, guest: bool = False) -> Person:
        """Let somebody join."""
        return self._join(Person(new_id(), name, guest=guest))

    def agent(self, name: str) -> App:
        """Install an agent, with a token that does not expire soon."""
        user = self._join(Person(new_id(), name, app=True))
        app = App(
            user,
            client_id=f"client-{name}-{new_id()[:8]}",
            client_secret=f"client-secret-{new_id()}",
            webhook_secret=f"lin_wh_{new_id()}",
        )
        app.tokens[f"lin_oauth_{new_id()}"] = float("inf")
        self.workspace.apps[name] = app
        return app

    def issue(
        self,
        title: str,
        description: str = "",
        *,
        state: str = "unstarted",
        by: Person | None = None,
    ) -> Issue:
        """Write an issue; an integration does it if nobody is named."""
        number = len(self.workspace.issues) + 1
        issue = Issue(new_id(), number, title, description, self.workspace.state(state), creator=by)
        self.workspace.issues[issue.id] = issue
        return issue

    def delegate(self, issue: Issue, app: App, by: Person | None) -> LinearSession:
        """Give an issue to an agent; an automation does it if nobody is named."""
        issue.delegate = app.user
        return self._begin(issue, app, by, self.comment(issue, None, THREAD.format(app.user.name)))

    def comment(
        self, issue: Issue, by: Person | None, words: str, *, under: Comment | None = None
    ) -> Comment:
        """Write below an issue, or below a comment on it."""
        comment = Comment(new_id(), words, by, self.workspace.now(), under)
        with self.changed:
            issue.comments.append(comment)
        return comment

    def mention(
        self,
        issue: Issue,
        app: App,
        by: Person,
        words: str,
        *,
        under: Comment | None = None,
        responsible: Person | None = None,
    ) -> LinearSession:
        """Speak to an agent in a comment.

        In a thread, `under` another comment, Linear begins one of its own for the session. Where an
        app speaks, the session is that of the person who is `responsible` for it.
        """
        source = self.comment(issue, by, f"@{app.user.name} {words}", under=under)
        creator = responsible or by
        if under is None:
            return self._begin(issue, app, creator, source)
        root = self.comment(issue, None, THREAD.format(app.user.name))
        return self._begin(issue, app, creator, root, source)

    def mention_on(self, anchor: Anchor, app: App, by: Person, words: str = "") -> LinearSession:
        """Begin a session about something else than an issue, in a comment or by a button."""
        there = self.issue("Not shown")
        comment = self.comment(there, by, f"@{app.user.name} {words}" if words else "")
        return self._begin(there, app, by, comment, anchor=anchor)

    def reply(self, session: LinearSession, by: Person, words: str) -> Activity:
        """Say something in an agent's session."""
        return self._prompt(session, by, words)

    def pick(self, session: LinearSession, by: Person, shown: str) -> Activity:
        """Choose one of the options that an agent offered last, by what its button shows."""
        return self._prompt(session, by, session.buttons[shown])

    def stop(self, session: LinearSession, by: Person) -> Activity:
        """Press stop."""
        return self._prompt(session, by, "stop", signal="stop")

    def undelegate(self, issue: Issue, by: Person) -> None:
        """Take an issue away from its agent."""
        delegate = issue.delegate
        issue.delegate = None
        apps = self.workspace.apps.values()
        app = next(app for app in apps if app.user is delegate)
        event = self._shown.notification(app, issue, "issueUnassignedFromYou", by)
        self.hooks.send(app, event)

    def move(self, issue: Issue, state: str) -> None:
        """Move an issue on the board."""
        with self.changed:
            issue.state = self.workspace.state(state)

    def _join(self, person: Person) -> Person:
        self.workspace.people[person.id] = person
        return person

    def _begin(
        self,
        issue: Issue,
        app: App,
        by: Person | None,
        comment: Comment,
        source: Comment | None = None,
        anchor: Anchor | None = None,
    ) -> LinearSession:
        now = self.workspace.now()
        with self.changed:
            session = LinearSession(new_id(), app, issue, by, comment, now, now, source)
            session.anchor = anchor
            self.workspace.sessions[session.id] = session
        self.hooks.send(app, self._shown.session_event(session, "created"))
        return session

    def _prompt(
        self, session: LinearSession, by: Person, words: str, signal: str | None = None
    ) -> Activity:
        now = self.workspace.now()
        content = {"type": "prompt", "body": words}
        activity = Activity(new_id(), by, content, now, signal=signal)
        with self.changed:
            session.activities.append(activity)
            session.updated_at = now
            session.status = session.status if signal else "active"
            session.stopping, session.stopped = signal == "stop", False
        self.hooks.send(session.app, self._shown.session_event(session, "prompted", activity))
        return activity
