"""The registry while the bridge runs: agents come, change, get other names and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.bridge import DEMO
from tests.support.observe import OVER, PATIENCE, Observed, demo
from tests.support.platform import Platform
from tests.support.postgres import read_store

ENTRY = {"command": DEMO, "sandbox": "none"}
KEY = "sk-a-key-of-one-agent-alone-0123456789"
PLAIN = "the-value-of-a-variable-that-is-not-called-a-key"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("registry")
    with (
        Platform() as platform,
        Observed(folder, platform, agents={"demo": demo()}, hooks=False) as bridge,
    ):
        yield bridge


def add(bridge: Observed, name: str, **entry: Any) -> dict[str, Any]:
    answer = bridge.http.post("/api/v1/agents", json={"name": name, **ENTRY, **entry})
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def registered(bridge: Observed) -> list[dict[str, Any]]:
    """List the agents, without what the bridge finds out about them meanwhile."""
    found = bridge.http.get("/api/v1/agents").json()["items"]
    checked = {"availability", "checks", "version", "isolation"}
    return [{key: each[key] for key in each.keys() - checked} for each in found]


def words(bridge: Observed, session: int) -> str:
    items = bridge.http.get(f"/api/v1/sessions/{session}/transcript").json()["items"]
    return "\n".join(item["text"] for item in items)


def problem(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    detail: str = answer.json()["detail"]
    return detail


def test_an_agent_is_added_works_at_once_and_keeps_its_key_to_itself(bridge: Observed) -> None:
    shown = add(bridge, "helper", env={"HELPER_KEY": KEY}, display_name="The Helper")

    session = bridge.open_session("helper", "say hello there")

    assert shown["source"] == "stored"
    assert bridge.ended(session["id"])["turns"][0]["state"] == "done"
    assert "hello there" in words(bridge, session["id"])
    listed = bridge.http.get("/api/v1/agents").text
    assert "The Helper" in listed
    assert KEY not in listed + bridge.http.get("/api/v1/agents/helper").text
    assert all(KEY.encode() not in kept for kept in read_store(bridge.data_dir).values())


def test_a_change_holds_from_the_next_turn_of_the_same_conversation(bridge: Observed) -> None:
    add(bridge, "changing")
    session = bridge.open_session("changing", "say before")
    bridge.ended(session["id"])

    changed = bridge.http.patch(
        "/api/v1/agents/changing", json={"display_name": "Changed", "description": "new"}
    )
    bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "recall"})

    assert changed.json()["display_name"] == "Changed"
    bridge.ended(session["id"], 2)
    assert words(bridge, session["id"]).count("before") >= 2
    undone = bridge.http.patch("/api/v1/agents/changing", json={"display_name": None})
    assert undone.json()["display_name"] == "changing"


def test_one_variable_changes_and_no_answer_ever_holds_a_secret(bridge: Observed) -> None:
    token = "xoxb-" + KEY
    slack = {"bot_token": token, "app_token": "xapp-1-" + KEY}
    answers = [
        bridge.http.post(
            "/api/v1/agents",
            json={"name": "keeper", **ENTRY, "env": {"KEEPER_KEY": KEY, "PLAIN_WORD": PLAIN}},
        ),
        bridge.http.patch("/api/v1/agents/keeper", json={"env": {"LEVEL": "2"}}),
        bridge.http.patch("/api/v1/agents/keeper", json={"env": {"LEVEL": None, "MORE": KEY}}),
        bridge.http.patch("/api/v1/agents/keeper", json={"credentials": {"slack": slack}}),
        bridge.http.get("/api/v1/agents/keeper"),
        bridge.http.patch("/api/v1/agents/keeper", json={"credentials": {"slack": None}}),
        bridge.http.patch("/api/v1/agents/keeper", json={"env": [KEY]}),
        bridge.http.patch("/api/v1/agents/keeper", json={"env": {KEY + "!": "x"}}),
        bridge.http.get("/api/v1/agents/demo"),
        bridge.http.get("/api/v1/agents"),
    ]

    said = "".join(answer.text for answer in answers)
    shown = answers[4].json()
    assert shown["entry"] == {**ENTRY, "env": ["KEEPER_KEY", "MORE", "PLAIN_WORD"]}
    assert shown["credentials"] == {"slack": ["app_token", "bot_token"]}
    assert answers[8].json()["entry"] == {**demo(), "env": ["AGENT_BRIDGE_DEMO_FAULTS"]}
    assert [answer.status_code for answer in answers] == [
        201,
        200,
        200,
        200,
        200,
        200,
        422,
        422,
        200,
        200,
    ]
    assert KEY not in said
    assert PLAIN not in said


def test_another_name_takes_the_conversations_along(bridge: Observed) -> None:
    add(bridge, "oldname")
    session = bridge.open_session("oldname", "say remember the blue door")
    bridge.ended(session["id"])

    renamed = bridge.http.post("/api/v1/agents/oldname/rename", json={"to": "newname"})
    bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "recall"})

    assert renamed.json()["name"] == "newname"
    found = bridge.ended(session["id"], 2)
    assert (found["agent"], found["key"].rpartition(":")[2]) == ("newname", "newname")
    assert "blue door" in words(bridge, session["id"]).partition("recall")[2]
    assert problem(bridge.http.get("/api/v1/agents/oldname"), 404)


def test_the_default_moves_requests_without_a_name_and_cannot_be_removed(bridge: Observed) -> None:
    add(bridge, "chief")

    chosen = bridge.http.post("/api/v1/agents/chief/default")

    assert chosen.json()["default"]
    listed = bridge.http.get("/api/v1/agents").json()["items"]
    assert [each["name"] for each in listed if each["default"]] == ["chief"]
    refusal = problem(bridge.http.delete("/api/v1/agents/chief"), 409)
    assert "another one the default" in refusal
    assert add(bridge, "deputy", default=True)["default"]
    refused = bridge.http.patch("/api/v1/agents/deputy", json={"default": False})
    assert "another one the default" in problem(refused, 409)
    bridge.http.post("/api/v1/agents/demo/default")
    listed = bridge.http.get("/api/v1/agents").json()["items"]
    assert [each["name"] for each in listed if each["default"]] == ["demo"]


def test_an_agent_that_is_gone_from_the_settings_keeps_its_name_for_people(
    tmp_path: Path,
) -> None:
    agents = {"demo": demo(), "aide": demo(display_name="Helper")}
    with Platform() as platform, Observed(tmp_path, platform, agents=agents) as bridge:
        bridge.ask("gone", "say here", "aide")
        bridge.stop()
        del bridge.agents["aide"]
        bridge.start()

        by_name = bridge.told("gone", "agent aide")
        by_title = bridge.told("gone", "agent Helper")

    assert by_name == "Helper was removed, so it does not answer. Mention another agent."
    assert by_title == by_name


def test_a_removed_agent_is_stopped_and_its_name_begins_with_nothing(bridge: Observed) -> None:
    add(bridge, "leaver")
    session = bridge.open_session("leaver", "say the secret word is swordfish\nhold never")
    bridge.wait(lambda: "swordfish" in words(bridge, session["id"]), "it does not begin", PATIENCE)
    bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "say later"})

    removed = bridge.http.delete("/api/v1/agents/leaver")

    assert removed.status_code == 204, removed.text
    found = bridge.http.get(f"/api/v1/sessions/{session['id']}").json()
    assert (found["state"], found["agent"]) == ("removed", "leaver")
    assert {turn["state"] for turn in found["turns"]} <= OVER
    assert "swordfish" in words(bridge, session["id"])
    gone = bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "say x"})
    assert "was removed" in problem(gone, 410)
    assert "was removed" in problem(bridge.http.get("/api/v1/agents/leaver"), 410)
    assert list((bridge.data_dir / "archive").glob("leaver-*"))

    again = add(bridge, "leaver")
    second = bridge.open_session("leaver", "recall", thread=session["thread"])
    bridge.ended(second["id"])

    assert again["id"] != "leaver"
    assert second["id"] != session["id"]
    assert "swordfish" not in words(bridge, second["id"]).partition("recall")[2]


def test_the_settings_win_and_say_where_to_change_them(bridge: Observed) -> None:
    for answer in (
        bridge.http.patch("/api/v1/agents/demo", json={"model": "x"}),
        bridge.http.delete("/api/v1/agents/demo"),
        bridge.http.post("/api/v1/agents/demo/rename", json={"to": "other"}),
    ):
        assert "AGENTS_JSON" in problem(answer, 409)
    taken = bridge.http.post("/api/v1/agents", json={"name": "demo", **ENTRY})
    assert "already" in problem(taken, 409)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"name": "A B", **ENTRY}, "lowercase letters"),
        ({"name": "bad"}, "Add command, driver or url"),
        ({"name": "bad", **ENTRY, "modle": "x"}, "Did you mean"),
        ({"name": "bad", **ENTRY, "permissions": "all"}, "preset"),
        ({"name": "bad", **ENTRY, "credentials": {"fax": {}}}, "Services are"),
        ({"name": "bad", **ENTRY, "credentials": {"slack": {"bot_token": "x"}}}, "slack"),
    ],
)
def test_a_bad_entry_is_refused_in_words_and_nothing_changes(
    bridge: Observed, entry: dict[str, Any], says: str
) -> None:
    before = registered(bridge)

    assert says in problem(bridge.http.post("/api/v1/agents", json=entry), 422)

    assert registered(bridge) == before


def test_everything_stays_after_kill_9(bridge: Observed) -> None:
    add(bridge, "stayer", env={"STAYER_KEY": KEY}, description="stays")
    session = bridge.open_session("stayer", "say remember the red gate")
    bridge.ended(session["id"])

    bridge.kill()
    bridge.start()
    bridge.http.post(f"/api/v1/sessions/{session['id']}/messages", json={"text": "recall"})

    bridge.ended(session["id"], 2)
    assert "red gate" in words(bridge, session["id"]).partition("recall")[2]
    listed = {each["name"]: each for each in bridge.http.get("/api/v1/agents").json()["items"]}
    assert listed["stayer"]["description"] == "stays"
