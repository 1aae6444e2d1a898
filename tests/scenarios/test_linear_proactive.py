"""Work that begins elsewhere is shown on the Linear issue that people name, if that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sim.linear import LinearSession
from tests.support.linear import LinearWorld

ADDRESS = "https://bridge.example.com"
WANTED = {"LINEAR_PROACTIVE": "true", "BRIDGE_BASE_URL": ADDRESS}
PROMPTED = "select count(*) from turn where state = 'prompted'"
CONTINUED = "select cuts from turn where state = 'prompted' and cuts > 0"
SESSIONS = "select count(*) from session"


def ask(world: LinearWorld, *lines: str) -> str:
    """Ask the agent on the page."""
    asked = {"agent": "demo", "text": "\n".join(lines)}
    answer = world.bridge.http.post("/api/v1/sessions", json=asked)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def only_session(world: LinearWorld) -> LinearSession:
    (session,) = world.linear.workspace.sessions.values()
    return session


def any_session(world: LinearWorld, fits: Callable[[LinearSession], bool]) -> bool:
    return any(map(fits, list(world.linear.workspace.sessions.values())))


def test_the_issue_shows_that_the_work_began_and_ended_and_takes_replies(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, settings=WANTED, page=True) as world:
        issue = world.linear.issue("Fix it")
        ask(world, f"say fixed {issue.identifier}, not UTF-8")
        ask(world, f"say fixed {issue.identifier}")
        world.linear.wait(lambda: any_session(world, lambda each: each.status == "complete"))
        session = only_session(world)

        thought, response = session.activities
        (link,) = (each["url"] for each in session.urls)
        assert link.startswith(ADDRESS)
        assert (thought.type, thought.body.count(link)) == ("thought", 1)
        assert (response.type, response.body) == ("response", f"Done: {link}")
        assert issue.delegate is None

        world.linear.reply(session, world.ann, "recall")
        world.wait_end(session, 2)

        assert "fixed" in session.of_type("response")[1].body
        assert world.turns() == 3
        assert world.bridge.rows(SESSIONS) == [(2,)]
        assert world.linear.faults == []


def test_a_bridge_that_dies_meanwhile_opens_no_second_session(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, settings=WANTED, page=True) as world:
        issue = world.linear.issue("Fix it")
        number = ask(world, f"For {issue.identifier}:", "hold never")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")
        world.bridge.kill()
        world.bridge.start()
        world.bridge.wait(lambda: world.bridge.rows(CONTINUED) == [(1,)], "never continued")
        world.bridge.http.post(f"/api/v1/sessions/{number}/cancel")
        world.linear.wait(lambda: any_session(world, lambda each: each.status == "complete"))

        assert only_session(world).response.startswith("Stopped: ")


def test_nothing_is_opened_unless_the_operator_wants_it(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, settings={"BRIDGE_BASE_URL": ADDRESS}, page=True) as world:
        issue = world.linear.issue("Fix it")
        ask(world, f"say fixed {issue.identifier}")
        world.bridge.wait(
            lambda: world.bridge.rows("select state from turn") == [("done",)], "never done"
        )

        assert world.linear.workspace.sessions == {}
