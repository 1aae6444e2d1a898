"""A workspace and a GitHub with two agents on both, which review and repair what they wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.github.state import Issue
from sim.slack.model import Message
from tests.support.bridge import ROOT, demo
from tests.support.github import Hub
from tests.support.slack import SECONDS, SlackWorld

AGENTS = ("claude", "codex")
COLLEAGUE = [sys.executable, str(ROOT / "tests" / "support" / "colleague_agent.py")]


class Company:
    """A workspace and a GitHub, with two agents that are on both and on the page."""

    def __init__(self, world: SlackWorld, hub: Hub) -> None:
        self.world, self.hub = world, hub
        self.bridge = world.bridge

    def begin_work(self, words: str) -> str:
        """Have Claude write a file and propose it; returns the thread."""
        world = self.world
        thread = world.say(f"{world.at('claude')} {words}")
        world.wait_answer(thread, "/pull/")
        return thread

    def begin_race(self, file: str) -> str:
        """Have both agents write a file; returns the thread."""
        return self.world.say(f"{self.world.at('claude')} race claude codex: write {file} raced")

    def wait_for_question(self, thread: str) -> Message:
        """Wait until people are asked which work to ship."""
        return self.world.wait_button(thread, "codex")

    def pick(self, thread: str) -> None:
        """Pick the work of Codex."""
        question = self.wait_for_question(thread)
        self.world.slack.click(self.world.bob, question.ts, "codex")

    def revive(self) -> None:
        """Start the bridge again, once it has died."""
        self.bridge.wait_dead()
        self.bridge.start()
        self.world.wait_listening()

    def prompts(self, words: str) -> list[str]:
        """List what agents were told with these words."""
        rows = self.bridge.rows("select prompt from turn order by id")
        return [row[0] for row in rows if words in row[0]]

    def rest(self, session: int) -> None:
        """Wait until a session has nothing to do."""
        busy = f"""select count(*) from turn where session = {session}
            and state in ('queued', 'starting', 'prompted')"""
        self.bridge.wait(lambda: self.bridge.rows(busy) == [(0,)], "it still works", SECONDS)

    def settle(self) -> None:
        """Wait until no agent works and no review goes on."""
        self.world.settle()

    def is_over(self) -> bool:
        """Tell whether all that agents do together is over."""
        begun = 'select count(distinct "group") from delegation where "group" != \'\''
        over = "select count(*) from told where mark like 'over:%'"
        return self.bridge.rows(begun) == self.bridge.rows(over)

    def say_on_page(self, session: dict[str, Any], text: str) -> None:
        """Say something in a conversation of the page."""
        path = f"/api/v1/sessions/{session['id']}/messages"
        answer = self.bridge.http.post(path, json={"text": text})
        assert answer.status_code < 300, answer.text

    def read_page(self, session: dict[str, Any]) -> str:
        """Read all that the conversation of a session shows."""
        rows = self.bridge.rows(
            """select t.text from transcript t join session s on s.place = t.place
            where s.id = ? order by t.id""",
            session["id"],
        )
        return "\n".join(row[0] for row in rows)


def pulls(hub: Hub, file: str) -> list[Issue]:
    """List the pull requests that add a file."""
    found = []
    for each in hub.pulls():
        assert each.pull is not None
        files = hub.github.git.diff_files("acme/widgets", each.pull.base, each.pull.sha)
        found += [each] if file in files else []
    return found


def states(pull: Issue) -> list[str]:
    """List the verdicts on a pull request."""
    assert pull.pull is not None
    return [each.state for each in pull.pull.reviews]


@contextmanager
def open_company(folder: Path) -> Iterator[Company]:
    """Open a workspace and a GitHub, with a bridge between them."""
    with Hub(folder, AGENTS) as hub:
        entry = {"command": COLLEAGUE, "mode": "free"}
        world = SlackWorld(folder, agents=AGENTS, entry=entry, page=True)
        world.entries = {"codex": demo(**entry, delegation_voice="own")}
        world.settings = {**hub.settings, "GITHUB_REPO": "acme/widgets"}
        with world:
            hub.call(world.bridge)
            yield Company(world, hub)
