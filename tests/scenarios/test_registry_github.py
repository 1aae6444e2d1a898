"""The registry on GitHub: agents come, get another key or name, and go while people talk."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sim.github.state import App, Issue
from tests.support.bridge import demo
from tests.support.github import PullWorld

STREAM = 8
"""How many comments are written while something changes."""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PullWorld]:
    with PullWorld(tmp_path_factory.mktemp("github")) as world:
        yield world


def hire(hub: PullWorld, name: str) -> App:
    """Register an App and add its agent over the API."""
    url = f"http://127.0.0.1:{hub.bridge.port}/webhooks/github/{name}"
    app = hub.github.app(f"{name}-bridge", url)
    hub.github.install(app, hub.repository)
    body = {"name": name, **demo(), "credentials": {"github": keys(app)}}
    answer = hub.bridge.http.post("/api/v1/agents", json=body)
    assert answer.status_code == 201, answer.text
    hub.apps[name] = app
    return app


def keys(app: App) -> dict[str, str]:
    return {
        "app_id": str(app.id),
        "private_key": app.private_pem,
        "webhook_secret": app.secret,
    }


def change(hub: PullWorld, name: str, **given: Any) -> None:
    body = {"credentials": {"github": given}}
    answer = hub.bridge.http.patch(f"/api/v1/agents/{name}", json=body)
    assert answer.status_code == 200, answer.text


@contextmanager
def talking(hub: PullWorld, name: str) -> Iterator[list[tuple[Issue, str]]]:
    """Have a person mention an agent on new issues while something happens."""
    said: list[tuple[Issue, str]] = []
    over = threading.Event()

    def talk() -> None:
        while len(said) < STREAM:
            word = f"word-{secrets.token_hex(4)}"
            said.append((hub.issue(f"@{name}-bridge say {word}"), word))
            over.wait(0.05)

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        yield said
    finally:
        over.set()
        talker.join()


@pytest.mark.long
def test_a_new_app_is_heard_at_once_and_its_agent_opens_a_pull_request(hub: PullWorld) -> None:
    app = hire(hub, "coder")

    issue = hub.issue("Please.", "Add a greeting")
    hub.github.comment("ann", issue, "@coder-bridge\nwrite greeting.txt hello")
    hub.allow()
    pull = hub.opened()

    assert pull.user is app.bot
    hub.wait_for(issue, pull.url, "coder")
    hub.settled()


@pytest.mark.slow
def test_a_rotated_webhook_secret_loses_nothing(hub: PullWorld) -> None:
    app = hire(hub, "rotating")
    old, new = app.secret, secrets.token_hex(20)

    with talking(hub, "rotating") as said:
        change(hub, "rotating", webhook_secret=new, webhook_secret_before=old)
        app.secret = new
        hub.github.quiet()
        change(hub, "rotating", webhook_secret_before=None)

    for issue, word in said:
        hub.wait_for(issue, word, "rotating")
    hub.settled()
    log = hub.github.hooks.of(app)
    assert {each.status for each in log} == {200}
    for issue, word in said:
        assert sum(word in each.body for each in hub.visible(issue, "rotating")) == 1
    assert hub.github.hooks.deliver(log[0].event, headers=log[0].event.headers(old)) == 401


@pytest.mark.long
def test_another_name_keeps_conversations_and_old_addresses(hub: PullWorld) -> None:
    app = hire(hub, "before")
    issue = hub.issue("@before-bridge say the door is blue")
    hub.wait_for(issue, "the door is blue", "before")
    hub.settled()

    renamed = hub.bridge.http.post("/api/v1/agents/before/rename", json={"to": "after"})

    assert renamed.status_code == 200, renamed.text
    hub.github.comment("ann", issue, "@before-bridge recall")
    hub.settled()
    assert sum("door is blue" in each.body for each in hub.visible(issue, "before")) == 2
    app.hook_url = app.hook_url.replace("before", "after")
    hub.github.comment("ann", issue, "@before-bridge say by the new address")
    hub.wait_for(issue, "by the new address", "before")
    sessions = hub.bridge.rows(
        "select count(distinct session) from turn join session on "
        "session.id = turn.session where session.agent = 'before'"
    )
    assert sessions == [(1,)]
    hub.settled()


@pytest.mark.long
def test_an_agent_removed_at_work_says_so_on_its_issues(hub: PullWorld) -> None:
    hire(hub, "quitter")
    issue = hub.issue("Please.", "Add a farewell")
    hub.github.comment("ann", issue, "@quitter-bridge\nwrite farewell.txt bye")
    hub.bridge.wait(lambda: bool(hub.asks()), "nothing was asked")
    working = hub.issue("@quitter-bridge say begun\nhold never")
    hub.progress(working, "quitter")

    removed = hub.bridge.http.delete("/api/v1/agents/quitter")

    assert removed.status_code == 204, removed.text
    hub.settled()
    assert hub.asks() == []
    for each in (issue, working):
        said = "\n".join(comment.body for comment in hub.visible(each, "quitter"))
        assert "quitter was removed, and its work here is stopped" in said
    hub.github.comment("ann", working, "@quitter-bridge are you there?")
    # Any of the agents that are left answers for it.
    hub.github.wait(lambda: any("so it does not answer" in each.body for each in working.comments))
    left = "select count(*) from delivery where state = 'new'"
    hub.bridge.wait(lambda: hub.bridge.rows(left) == [(0,)], "a delivery is left")
    assert hub.bridge.http.get("/api/v1/agents/quitter").status_code == 410


@pytest.mark.slow
def test_a_removed_agent_leaves_its_pull_request_and_what_it_had_not_pushed(
    hub: PullWorld,
) -> None:
    hire(hub, "leaver")
    done = hub.issue("Please.", "Add a door")
    hub.github.comment("ann", done, "@leaver-bridge\nwrite door.txt blue")
    hub.allow()
    hub.github.wait(lambda: any("/pull/" in each.body for each in hub.visible(done, "leaver")))
    hub.settled()
    working = hub.issue("Please.", "Add a gate")
    hub.github.comment("ann", working, "@leaver-bridge\nwrite gate.txt red\nhold never")
    hub.allow()
    files = hub.bridge.data_dir / "workspaces"
    hub.bridge.wait(lambda: any(files.glob("*leaver*/gate.txt")), "nothing was written")
    hub.github.comment("ann", working, "@leaver-bridge say this waits")
    hub.bridge.wait(
        lambda: hub.bridge.rows("select 1 from turn where state = 'queued'") != [], "no queue"
    )

    assert hub.bridge.http.delete("/api/v1/agents/leaver").status_code == 204

    hub.settled()
    said = "\n".join(comment.body for comment in hub.visible(working, "leaver"))
    assert "leaver was removed, and its work here is stopped" in said
    assert "this waits" not in said
    assert any(files.glob("*leaver*/gate.txt"))
    pull = next(each for each in hub.pulls() if each.title.startswith("write door.txt"))
    assert pull.state == "open"
    hub.github.comment("ann", pull, "@leaver-bridge go on")
    hub.github.wait(lambda: any("so it does not answer" in each.body for each in pull.comments))
    turns = hub.bridge.rows(
        "select distinct turn.state, closed from turn join session on session.id = turn.session"
        " where agent = 'leaver'"
    )
    assert {state for state, _ in turns} <= {"done", "cancelled"}
    assert {closed for _, closed in turns} == {"removed"}
