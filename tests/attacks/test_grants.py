"""An agent cannot stretch an "always": what was granted is that call, whatever a later one claims.

These enter by a whole bridge with a hostile agent that asks a second time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.observe import PATIENCE, Observed
from tests.support.platform import Platform
from tests.support.plays import call, player, put

ONCE = {"optionId": "once", "name": "Allow once", "kind": "allow_once"}
NO = {"optionId": "no", "name": "Reject", "kind": "reject_once"}
ALWAYS = {"optionId": "always", "name": "Reject", "kind": "allow_always"}
OWN = {"optionId": "bridge:always", "name": "Allow once", "kind": "allow_once"}


def run(command: object, title: str = "Run npm test", **more: object) -> dict[str, Any]:
    return call(1, title, "execute", status="pending", rawInput={"command": command, **more})


def edit(path: str) -> dict[str, Any]:
    return call(1, "Edit", "edit", status="pending", locations=[{"path": path}], rawInput={"n": 1})


GRANTED = run("npm test")
TRICKS = {
    "arguments": run("npm test; rm -rf /"),
    "list": run(["npm", "test"]),
    "shell": run(["sh", "-c", "npm test"]),
    "space": run("npm  test"),
    "newline": run("npm test\nid"),
    "case": run("NPM test"),
    "quotes": run("npm 'test'"),
    "folder": run("npm test", cwd="/"),
    "environment": run("npm test", env={"NODE_OPTIONS": "--require /evil"}),
    "kind": {**GRANTED, "kind": "edit", "rawInput": {"file_path": "a", "command": "npm test"}},
    "nothing": {**GRANTED, "rawInput": {}},
    "twice": {**GRANTED, "rawInput": {"command": "npm test", "script": "rm -rf /"}},
}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("stretched")
    plays = folder / "plays"

    def write(name: str, wanted: dict[str, Any], *options: dict[str, str]) -> None:
        asks = {key: value for key, value in wanted.items() if key != "sessionUpdate"}
        put(plays, name, [{"ask": asks, "options": options or [ONCE, ALWAYS, NO]}])

    write("granted", GRANTED)
    write("disguised", GRANTED, ONCE, OWN, NO)
    write("link", edit("$CWD/link"))
    for name, wanted in TRICKS.items():
        write(f"trick{name}", wanted)
    announced = [GRANTED, {"ask": {**TRICKS["arguments"]}, "options": [ONCE, NO]}]
    put(plays, "announced", announced)
    agents = {"player": player(plays)}
    with Platform() as platform, Observed(folder, platform, agents=agents, hooks=False) as bridge:
        yield bridge


def begin(bridge: Observed, words: str) -> dict[str, Any]:
    new = {"agent": "player", "text": words}
    session: dict[str, Any] = bridge.http.post("/api/v1/sessions", json=new).json()
    return session


def say(bridge: Observed, session: dict[str, Any], words: str) -> None:
    path = f"/api/v1/sessions/{session['id']}/messages"
    assert bridge.http.post(path, json={"text": words}).status_code == 202


def open_ask(bridge: Observed, session: dict[str, Any]) -> dict[str, Any]:
    """Wait until a session asks something."""

    def found() -> list[dict[str, Any]]:
        asks = bridge.http.get("/api/v1/asks", params={"state": "open", "limit": 500}).json()
        return [ask for ask in asks["items"] if ask["session"] == session["id"]]

    bridge.wait(lambda: bool(found()), "nothing is asked", PATIENCE)
    return found()[0]


def answer(bridge: Observed, session: dict[str, Any], option: str) -> dict[str, Any]:
    ask = open_ask(bridge, session)
    given = bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json={"option": option})
    assert given.status_code == 200, given.text
    return ask


@pytest.mark.long
def test_no_other_call_is_covered_under_the_same_title_and_number(bridge: Observed) -> None:
    session = begin(bridge, "granted")
    answer(bridge, session, "bridge:always")
    bridge.ended(session["id"])
    say(bridge, session, "granted")
    bridge.ended(session["id"], 2)

    for turns, name in enumerate(("announced", *(f"trick{name}" for name in TRICKS)), 3):
        say(bridge, session, name)
        answer(bridge, session, "no")
        bridge.ended(session["id"], turns)

    count = "select count(*) from ask where session = ?"
    assert bridge.rows(count, session["id"]) == [(len(TRICKS) + 2,)]


def test_an_agent_can_neither_name_nor_forge_an_always(bridge: Observed) -> None:
    session = begin(bridge, "disguised")
    ask = answer(bridge, session, "no")
    named = {option["id"]: option["name"] for option in ask["options"]}
    bridge.ended(session["id"])

    assert named == {
        "once": "Allow once",
        "bridge:always": "Always allow `npm test` in this thread",
        "no": "Reject",
    }


def test_a_file_is_granted_where_it_leads_and_not_by_its_name(bridge: Observed) -> None:
    session = begin(bridge, "say ready")
    bridge.ended(session["id"])
    workspace = bridge.workspace("player", session["id"])
    for name in ("one", "two"):
        (workspace / name).write_text(name)
    (workspace / "link").symlink_to("one")
    say(bridge, session, "link")
    answer(bridge, session, "bridge:always")
    bridge.ended(session["id"], 2)
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("two")
    say(bridge, session, "link")
    answer(bridge, session, "no")
    bridge.ended(session["id"], 3)
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("/etc/hosts")
    say(bridge, session, "link")
    outside = answer(bridge, session, "no")

    assert [option["id"] for option in outside["options"]] == ["once", "no"]
