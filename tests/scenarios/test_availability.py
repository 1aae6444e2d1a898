"""Agents that cannot work say so and what to do, and are ready again once that is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.features.agents.visits import tell_bridge
from app.services import registered_services
from tests.support.bridge import ADMIN_TOKEN, DEMO, SECRET_KEY
from tests.support.observe import PATIENCE, QUICK, Observed, demo
from tests.support.platform import Platform

pytestmark = pytest.mark.one_database

# Faults of the whole process are read at its start, so that the next start may be a good one.
SWITCHED = 'AGENT_BRIDGE_DEMO_FAULTS=$(cat "$SWITCH" 2>/dev/null || echo 1) exec "$@"'


def switched(file: Path) -> dict[str, Any]:
    command = ["sh", "-c", SWITCHED, "sh", *DEMO]
    return {"command": command, "sandbox": "none", "env": {"SWITCH": str(file)}}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("availability")
    (folder / "guarded").write_text("login-new")
    agents = {
        "demo": demo(),
        "absent": {"command": [str(folder / "late-agent")], "sandbox": "none"},
        "broken": demo("fail-initialize"),
        "guarded": switched(folder / "guarded"),
        "limited": demo(),
        "flaky": switched(folder / "flaky"),
    }
    with (
        Platform() as platform,
        Observed(
            folder, platform, agents=agents, timeouts=QUICK, hooks=False, starts_agents=True
        ) as bridge,
    ):
        yield bridge


def read(bridge: Observed, agent: str) -> dict[str, Any]:
    found: dict[str, Any] = bridge.http.get(f"/api/v1/agents/{agent}").json()
    return found


def wait_for(bridge: Observed, agent: str, state: str) -> dict[str, Any]:
    def seen() -> bool:
        return bool(read(bridge, agent)["availability"]["state"] == state)

    bridge.wait(seen, f"{agent} is not {state}: {read(bridge, agent)}", PATIENCE)
    return read(bridge, agent)


def probe(bridge: Observed, agent: str) -> str:
    answer = bridge.http.post(f"/api/v1/agents/{agent}/probe")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["availability"]["state"])


def settings(bridge: Observed) -> Configuration:
    return load(
        {
            "DATA_DIR": str(bridge.data_dir),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_SECRET_KEY": SECRET_KEY,
        },
        known=known_agents(),
        services=registered_services(),
        home=bridge.folder / "person",
    )


def checks(agent: dict[str, Any]) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in agent["checks"]}


@pytest.mark.long
def test_what_keeps_an_agent_from_working_is_found_at_the_start_and_again_once_it_is_repaired(
    bridge: Observed,
) -> None:
    absent = read(bridge, "absent")
    broken = wait_for(bridge, "broken", "unavailable")
    guarded = wait_for(bridge, "guarded", "login_needed")
    ready = read(bridge, "demo")

    assert absent["availability"] == {
        "state": "unavailable",
        "reason": f"'{bridge.folder}/late-agent' was not found on PATH.",
        "remedy": "Check its command in AGENTS_JSON.",
    }
    assert (ready["availability"]["state"], ready["version"]) == ("ready", "1.0.0")
    assert checks(ready) == {"command": True, "isolation": False, "initialize": True, "login": True}
    assert "initialize failed, as it was told to" in broken["availability"]["reason"]
    assert "agents probe broken" in broken["availability"]["remedy"]
    assert guarded["availability"] == {
        "state": "login_needed",
        "reason": "Not logged in.",
        "remedy": "Run `agent-bridge agents login guarded`, or give it its key.",
    }

    (bridge.folder / "guarded").unlink()
    late = bridge.folder / "late-agent"
    late.write_text(f"#!/bin/sh\nexec {sys.executable} {DEMO[1]}\n")
    late.chmod(0o700)

    assert probe(bridge, "guarded") == "ready"
    tell_bridge(settings(bridge), "absent")  # as `agents probe` and `agents login` do
    assert read(bridge, "absent")["availability"]["state"] == "ready"
    assert probe(bridge, "broken") == "unavailable"
    assert bridge.http.post("/api/v1/agents/none/probe").status_code == 404
    bridge.gone("guarded")
    assert not list((bridge.data_dir / "workspaces").glob("check-*"))


def test_a_limit_that_stops_a_turn_is_shown_until_a_turn_works(bridge: Observed) -> None:
    begun = bridge.http.post("/api/v1/sessions", json={"agent": "limited", "text": "limit 600"})
    limited = wait_for(bridge, "limited", "limited")
    (ask,) = bridge.open_asks()

    bridge.http.post(f"/api/v1/asks/{ask}/answer", json={"option": "bridge:go-on"})
    ready = wait_for(bridge, "limited", "ready")

    assert begun.status_code == 201
    assert limited["availability"]["reason"] == "Hit its usage limit."
    assert limited["availability"]["remedy"].startswith("It resets at ")
    assert checks(ready)["last turn"]


def test_an_agent_that_cannot_be_started_for_a_turn_is_tried_again(bridge: Observed) -> None:
    assert probe(bridge, "flaky") == "ready"
    (bridge.folder / "flaky").write_text("exit-at-start")

    bridge.http.post("/api/v1/sessions", json={"agent": "flaky", "text": "say hello"})
    dead = wait_for(bridge, "flaky", "unavailable")

    assert "stopped unexpectedly" in dead["availability"]["reason"]
    assert not checks(dead)["last turn"]
