"""Agents that send what no database takes: the conversations of everyone go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import postgres
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.plays import player, put

POISONS: dict[str, Any] = {
    "nul": "a\0b",
    "half": "a\ud83db\udc00",
    "number": float("nan"),
    "infinity": [float("inf"), -float("inf"), 10**400, 1e308],
}


def spread(poison: Any) -> list[dict[str, Any]]:
    """Put something into every field of an update that an agent fills."""
    tool = {"toolCallId": poison, "title": poison, "kind": poison, "status": poison}
    diff = {"type": "diff", "path": poison, "oldText": poison, "newText": poison}
    link = {"type": "resource_link", "uri": poison, "name": poison}
    updates: list[dict[str, Any]] = [
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": poison}},
        {"sessionUpdate": "agent_message_chunk", "content": link},
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": poison}},
        {"sessionUpdate": "tool_call", **tool},
        {"sessionUpdate": "tool_call", "toolCallId": "t1", "rawInput": {"command": poison}},
        {"sessionUpdate": "tool_call", "toolCallId": "t2", "rawOutput": {"key": [poison]}},
        {"sessionUpdate": "tool_call", "toolCallId": "t3", "content": [diff]},
        {"sessionUpdate": "tool_call", "toolCallId": "t4", "locations": [{"path": poison}]},
        {"sessionUpdate": "tool_call", "toolCallId": "t5", "_meta": {"parentToolCallId": poison}},
        {"sessionUpdate": "plan", "entries": [{"content": poison, "status": "pending"}]},
        {"sessionUpdate": "current_mode_update", "currentModeId": poison},
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [{"name": poison, "description": poison}],
        },
        {"sessionUpdate": "config_option_update", "configOptions": [{"id": "o", "name": poison}]},
        {"sessionUpdate": "session_info_update", "title": poison},
        {
            "sessionUpdate": "usage_update",
            "used": poison,
            "cost": {"amount": 1, "currency": poison},
        },
        {"sessionUpdate": f"unknown {json.dumps(poison)[:20]}", "value": {str(poison): poison}},
    ]
    return updates


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put every bridge on one kind of database, then on the other one."""
    if request.param == "postgresql":
        postgres.need_server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(postgres.CHOICE, request.param)
        yield


@pytest.fixture(scope="module")
def bridge(database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with an agent that sends anything and an honest one."""
    folder = tmp_path_factory.mktemp("poison")
    plays = folder / "plays"
    for name, poison in POISONS.items():
        put(plays, name, spread(poison))
        put(plays, f"asks{name}", [asks(poison)])
    put(plays, "large", spread("$FILL ab 1000000"))
    agents = {"demo": player(plays), "honest": demo()}
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        yield bridge


def asks(poison: Any) -> dict[str, Any]:
    words = str(poison)
    call = {"toolCallId": words, "title": words, "kind": "execute", "rawInput": {words: poison}}
    options = [
        {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
        {"optionId": words, "name": words, "kind": "reject_once"},
    ]
    return {"ask": call, "options": options}


def assert_everyone_goes_on(bridge: Observed, place: str) -> None:
    assert bridge.ask(place, "say Hello")["text"] == "Hello"
    assert bridge.ask(place, "say Hello", "honest")["text"] == "Hello"
    assert bridge.http.get("/readyz").status_code == 200
    assert "DataError" not in bridge.log.read_text()


@pytest.mark.parametrize("poison", POISONS)
def test_an_update_that_no_database_takes_stops_no_later_turn(
    bridge: Observed, poison: str
) -> None:
    end = bridge.ask(f"updates-{poison}", poison)

    assert end["state"] == "done"
    assert_everyone_goes_on(bridge, f"updates-{poison}")


@pytest.mark.long
def test_updates_of_megabytes_stop_no_later_turn(bridge: Observed) -> None:
    end = bridge.ask("large", "large")

    assert end["state"] == "done"
    assert_everyone_goes_on(bridge, "large")


@pytest.mark.parametrize("poison", POISONS)
def test_a_question_that_no_database_takes_stops_no_later_turn(
    bridge: Observed, poison: str
) -> None:
    place = f"asks-{poison}"
    number = bridge.begin(place, f"asks{poison}")
    (ask,) = bridge.open_asks(place=place)
    bridge.answer(ask)

    assert bridge.end(place, number)["state"] == "done"
    assert_everyone_goes_on(bridge, place)


def test_a_row_that_an_earlier_version_stored_stops_no_later_turn(bridge: Observed) -> None:
    bridge.ask("earlier", "say Hello", "honest")
    for poison in (r"a\u0000b", r"a\ud800b"):
        data = f'{{"state": "mode", "value": "{poison}"}}'
        bridge.write(
            "insert into transcript (place, session, turn, kind, speaker, text, data, at)"
            " select place, session, turn, 'notice', '', '', ?, 1.0 from transcript"
            " where text = 'Hello' and kind = 'text' order by id desc limit 1",
            data,
        )

    assert_everyone_goes_on(bridge, "earlier")


def test_words_that_no_database_takes_are_answered(bridge: Observed) -> None:
    assert bridge.ask("words", "say a\0b\ud83dc", "honest")["text"] == "a\ufffdb\ufffdc"
    assert_everyone_goes_on(bridge, "words")


@pytest.mark.usefixtures("database")
def test_words_that_no_database_takes_are_taken_or_refused_by_the_api(tmp_path: Path) -> None:
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents={"demo": demo()}, hooks=False) as bridge,
    ):
        words = {"agent": "demo", "text": "say a\0b", "thread": "api"}
        kind = {"Content-Type": "application/json"}
        new = bridge.http.post("/api/v1/sessions", content=json.dumps(words), headers=kind)
        assert new.status_code == 201, new.text
        bridge.ended(new.json()["id"])
        transcript = bridge.http.get(f"/api/v1/sessions/{new.json()['id']}/transcript").text

        half = bridge.http.post(
            "/api/v1/sessions", content=json.dumps({**words, "text": "\ud83d"}), headers=kind
        )

        assert "a\ufffdb" in transcript
        assert half.status_code == 422
        assert bridge.http.get("/t/web/api").status_code == 200
        assert bridge.http.get("/readyz").status_code == 200


def test_a_search_for_what_no_database_takes_finds_nothing(bridge: Observed) -> None:
    found = bridge.http.get("/api/v1/agents/demo/memory", params={"q": "a\0b c"})

    assert (found.status_code, found.json()["items"]) == (200, [])
