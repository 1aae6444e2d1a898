"""An "always" on the page, in the API, in Slack, on GitHub, on Linear and in a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.test_command_line import Machine, ask_in_a_terminal
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.observe import PATIENCE, Observed, demo
from tests.support.platform import Platform
from tests.support.plays import call, player, put
from tests.support.slack import SlackWorld

ECHO = "Always allow `echo hi` in this thread"
LONG = f"echo {'long ' * 30}end"
EXACTLY = "Always allow exactly this command in this thread"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("grants")
    plays = folder / "plays"
    for name, command in (("covered", "touch a"), ("uncovered", "touch a b")):
        run = call(1, "Work", "execute", rawInput={"command": command})
        put(plays, name, [{"use": run}])
    wanted = call(2, "Work", "execute", status="pending", rawInput={"command": "touch a"})
    put(plays, "wanted", [{"ask": {key: wanted[key] for key in wanted if key != "sessionUpdate"}}])
    agents = {"demo": demo(), "player": player(plays, unasked="tell")}
    with Platform() as platform, Observed(folder, platform, agents=agents, hooks=False) as bridge:
        yield bridge


def begin(bridge: Observed, text: str, agent: str = "demo") -> dict[str, Any]:
    answer = bridge.http.post("/api/v1/sessions", json={"agent": agent, "text": text})
    assert answer.status_code == 201, answer.text
    session: dict[str, Any] = answer.json()
    return session


def say(bridge: Observed, session: dict[str, Any], text: str) -> None:
    path = f"/api/v1/sessions/{session['id']}/messages"
    assert bridge.http.post(path, json={"text": text}).status_code == 202


def asked(bridge: Observed, session: dict[str, Any]) -> dict[str, Any]:
    """Wait until a session asks something."""

    def found() -> list[dict[str, Any]]:
        asks = bridge.http.get("/api/v1/asks", params={"state": "open", "limit": 500}).json()
        return [ask for ask in asks["items"] if ask["session"] == session["id"]]

    bridge.wait(lambda: bool(found()), "nothing is asked", PATIENCE)
    return found()[0]


def choose(bridge: Observed, session: dict[str, Any], name: str) -> dict[str, Any]:
    """Wait for an ask, and answer it by the name of an option."""
    ask = asked(bridge, session)
    option = next(each["id"] for each in ask["options"] if each["name"] == name)
    answer = bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json={"option": option})
    assert answer.status_code == 200, answer.text
    return ask


def granted(bridge: Observed, **query: Any) -> list[dict[str, Any]]:
    answer = bridge.http.get("/api/v1/grants", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_an_always_for_one_command_lets_no_other_run_and_is_listed_and_taken_back(
    bridge: Observed,
) -> None:
    session = begin(bridge, "run echo hi")
    first = choose(bridge, session, ECHO)
    bridge.ended(session["id"])

    say(bridge, session, "run echo hi\nrun ls")
    second = choose(bridge, session, "Reject")
    bridge.ended(session["id"], 2)

    assert [option["name"] for option in first["options"]] == ["Allow once", ECHO, "Reject"]
    assert second["subject"] == "ls"
    (grant,) = granted(bridge, session=session["id"])
    facts = {name: grant[name] for name in ("agent", "place", "extent", "subject", "state")}
    assert facts == {
        "agent": "demo",
        "place": f"web:{session['thread']}",
        "extent": "command",
        "subject": "echo hi",
        "state": "active",
    }
    assert (grant["words"], grant["granted_by"], grant["ask"]) == (
        "`echo hi`",
        "operator",
        first["id"],
    )
    here = {"place": grant["place"], "agent": "demo", "state": "active"}
    assert granted(bridge, **here) == [grant]
    assert granted(bridge, **{**here, "agent": "player"}) == []
    assert granted(bridge, **{**here, "state": "expired"}) == []
    assert granted(bridge, after=grant["id"], session=session["id"]) == []

    path = f"/api/v1/grants/{grant['id']}"
    taken = [bridge.http.delete(path).status_code, bridge.http.delete(path).status_code]
    unknown = bridge.http.delete("/api/v1/grants/999999").status_code
    say(bridge, session, "run echo hi")
    choose(bridge, session, "Reject")

    assert (taken, unknown) == ([204, 409], 404)
    (ended,) = granted(bridge, session=session["id"])
    assert (ended["state"], ended["ended_by"]) == ("ended", "operator")


def test_a_call_that_a_grant_covers_counts_as_allowed_and_any_other_does_not(
    bridge: Observed,
) -> None:
    session = begin(bridge, "wanted", "player")
    choose(bridge, session, "Always allow `touch a` in this thread")
    bridge.ended(session["id"])
    say(bridge, session, "covered")
    bridge.ended(session["id"], 2)
    say(bridge, session, "uncovered")
    bridge.ended(session["id"], 3)

    notices = "select text from transcript where session = ? and kind = 'notice'"
    assert bridge.rows(notices, session["id"]) == [("Ran without asking: `touch a b`.",)]


def test_a_grant_is_taken_back_on_the_page_without_a_script(bridge: Observed) -> None:
    session = begin(bridge, "write a.txt one")
    choose(bridge, session, "Always allow editing `a.txt` in this thread")
    bridge.ended(session["id"])
    thread = f"/t/web/{session['thread']}"
    html = {"Accept": "text/html"}

    shown = bridge.http.get(thread, headers=html).text
    action = re.search(r'<form id="take-back" method="post" action="([^"]+)">', shown)
    button = re.search(r'<button [^>]*form="take-back" name="grant" value="(\d+)"', shown)
    assert action
    assert button
    assert "editing <code>a.txt</code>" in shown
    form = {"csrf": "", "grant": button[1]}
    done = bridge.http.post(unescape(action[1]), data=form, headers=html)
    again = bridge.http.post(unescape(action[1]), data=form, headers=html)

    assert (done.status_code, done.headers["location"]) == (303, f"{thread}?done=grant-ended")
    assert "Always allowed" not in bridge.http.get(thread, headers=html).text
    assert again.status_code == 409
    assert "This no longer holds" in again.text


def test_a_grant_given_in_slack_is_named_on_its_button_and_holds_in_that_thread_alone(
    tmp_path: Path,
) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} run echo hi\nsay one")
        question = world.wait_button(thread, ECHO)
        world.slack.click(world.bob, question.ts, ECHO)
        world.wait_answer(thread, "one")
        world.say(f"{world.at('claude')} run echo hi\nsay two\nrun {LONG}", thread=thread)
        long = world.wait_button(thread, EXACTLY)
        world.slack.click(world.ann, long.ts, "Reject")
        world.wait_answer(thread, "two")
        other = world.say(f"{world.at('claude')} run echo hi")
        world.wait_button(other, ECHO)

        assert f"Bob: {ECHO}" in world.slack.message(question.ts).words
        assert LONG in json.dumps(long.blocks)
        grants = 'select granted_by, subject, speaker from "grant"'
        assert world.bridge.rows(grants) == [("Bob", "echo hi", world.bob)]


@pytest.mark.long
def test_a_grant_given_on_github_is_numbered_and_named_in_full(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.comment("ann", issue, "@claude-bridge\nrun echo hi\nsay one")
        asking = world.wait_for(issue, f"2. ``{ECHO}``")
        world.github.comment("ann", issue, "@claude-bridge 2")
        world.wait_for(issue, "one")
        world.github.comment("ann", issue, "@claude-bridge\nrun echo hi\nsay two")
        world.wait_for(issue, "two")
        world.settled()

        assert asking
        assert world.bridge.rows("select answered_by from ask") == [("ann",)]


@pytest.mark.long
def test_a_grant_given_on_linear_is_an_option_of_that_name(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("run echo hi")
        world.wait_status(session, "awaitingInput")
        assert ECHO in session.buttons
        world.linear.pick(session, world.ann, ECHO)
        world.wait_end(session)
        world.linear.reply(session, world.ann, "run echo hi")
        world.wait_end(session, 2)

        assert world.bridge.rows("select count(*) from ask") == [(1,)]


@pytest.mark.long
def test_a_grant_given_in_a_terminal_is_listed_and_revoked_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with machine.serving():
        status, _, shown = ask_in_a_terminal(machine, "run echo hi", f"{ECHO}\n")
        assert status == 0
        assert ECHO in shown
        (grant,) = json.loads(machine.run("grants", "list", "--json").stdout)
        table = machine.run("grants", "list").stdout
        revoked = machine.run("grants", "revoke", str(grant["id"]))
        again = machine.run("grants", "revoke", str(grant["id"]))

        assert "`echo hi`" in table
        assert revoked.stdout == f"Grant {grant['id']} was taken back.\n"
        assert (again.returncode, "no longer holds" in again.stderr) == (1, True)
        assert json.loads(machine.run("grants", "list", "--json").stdout) == []
        assert "ended by operator" in machine.run("grants", "list", "--all").stdout
