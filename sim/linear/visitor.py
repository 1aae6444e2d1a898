"""Puts a person at a terminal into the workspace of the simulated Linear."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sim.linear.records import LinearSession
from sim.linear.server import Linear


@contextmanager
def visit(agents: Sequence[str], bridge: str) -> Iterator[LinearVisitor]:
    """Start a Linear with an app for each agent."""
    with Linear() as linear:
        yield LinearVisitor(linear, agents, bridge)


class LinearVisitor:
    """Ann, who is a member, and an app for each agent."""

    a_thread = "an issue"

    def __init__(self, linear: Linear, agents: Sequence[str], bridge: str) -> None:
        self._linear = linear
        self._bridge = bridge.rstrip("/")
        self._apps = {name: linear.agent(name) for name in agents}
        for name, app in self._apps.items():
            app.webhook_url = f"{self._bridge}/webhooks/linear/{name}"
        self._ann = linear.person("Ann")
        self._session: LinearSession | None = None

    @property
    def changed(self) -> threading.Condition:
        """The platform's lock, which signals every change."""
        return self._linear.changed

    def settings(self) -> Iterator[str]:
        """Yield the settings that a bridge needs, one line each."""
        yield f"LINEAR_API_URL={self._linear.url}"
        for name, app in self._apps.items():
            suffix = name.upper().replace("-", "_")
            yield f"LINEAR_ACCESS_TOKEN__{suffix}={next(iter(app.tokens))}"
            yield f"LINEAR_WEBHOOK_SECRET__{suffix}={app.webhook_secret}"

    def start(self, words: str) -> None:
        """Delegate a new issue to the agent that the words mention, or to the first one."""
        names = "|".join(map(re.escape, sorted(self._apps, key=len, reverse=True)))
        found = re.search(rf"@({names})\b", words)
        app = self._apps[found[1]] if found else next(iter(self._apps.values()))
        title = words.replace(found[0], "").strip() if found else words
        issue = self._linear.issue(title or words, by=self._ann)
        self._session = self._linear.delegate(issue, app, self._ann)

    def reply(self, words: str) -> bool:
        """Reply in the session of the last issue; false if there is none."""
        if self._session is None:
            return False
        self._linear.reply(self._session, self._ann, words)
        return True

    def press(self, label: str) -> bool:
        """Press a button of the newest question that has it; false if there is none."""
        for session in reversed(list(self._linear.workspace.sessions.values())):
            if session.of_type("elicitation") and label in session.buttons:
                self._linear.pick(session, self._ann, label)
                return True
        return False

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield the answers, questions and errors of agents, and lost webhooks."""
        for session in self._linear.workspace.sessions.values():
            questions = session.of_type("elicitation")
            for activity in session.of_type("response", "elicitation", "error"):
                labels = session.buttons if activity in questions[-1:] else ()
                offered = " ".join(f"[{label}]" for label in labels)
                words = "\n".join(filter(None, (activity.body, offered)))
                where = f"{session.app.user.name} on {session.issue.identifier}"
                yield activity.id, f"{where}: {words}"
        for delivery in self._linear.hooks.sent:
            if delivery.answers and not delivery.acknowledged:
                answer = f"{self._bridge} did not take a webhook"
                yield delivery.headers["Linear-Delivery"], f"{answer}: does the bridge run there?"
