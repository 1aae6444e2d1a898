"""Programs found on PATH: an entry that people added wins, and no isolation is lost silently."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.support.found import Unnamed
from tests.support.platform import Platform

pytestmark = pytest.mark.one_database

KEY = "sk-a-key-that-the-added-agent-alone-has-01234"
CHANGED = "Its isolation changed. Before: "
OPENED = f"{CHANGED}isolated (bubblewrap), its own home, its own network. Now: not isolated"
FOUND = "found on PATH"


@pytest.fixture
def platform() -> Iterator[Platform]:
    with Platform() as platform:
        yield platform


def add_over_the_api(bridge: Unnamed) -> None:
    entry = {"driver": "opencode", "permissions": "read-only", "env": {"OWN_KEY": KEY}}
    added = bridge.http.post("/api/v1/agents", json={"name": "opencode", **entry})
    assert added.status_code == 201, added.text


def add_by_a_command(bridge: Unnamed) -> None:
    added = bridge.run(
        *("agents", "add", "opencode", "--driver", "opencode"),
        *("--set", "permissions=read-only", "--env", f"OWN_KEY={KEY}"),
    )
    assert added.returncode == 0, added.stderr


def words(bridge: Unnamed, session: int) -> str:
    items = bridge.http.get(f"/api/v1/sessions/{session}/transcript").json()["items"]
    return "\n".join(item["text"] for item in items)


def recall(bridge: Unnamed, session: int, turns: int = 2) -> str:
    """Have an agent repeat what it was told; returns what was said after the question."""
    bridge.http.post(f"/api/v1/sessions/{session}/messages", json={"text": "recall"})
    found = bridge.ended(session, turns)
    assert found["turns"][-1]["state"] == "done", found
    return words(bridge, session).rpartition("recall")[2]


def page(bridge: Unnamed, path: str) -> str:
    """Read a page as a person sees it."""
    return unescape(bridge.http.get(path).text)


@pytest.mark.parametrize(
    "add", [add_over_the_api, pytest.param(add_by_a_command, marks=pytest.mark.long)]
)
def test_an_added_agent_stays_as_it_is_when_its_program_is_found(
    tmp_path: Path, platform: Platform, add: Callable[[Unnamed], None]
) -> None:
    with Unnamed(tmp_path, platform) as bridge:
        add(bridge)
        before = bridge.agent("opencode")

        bridge.restart("opencode")

        after = bridge.agent("opencode")
        shown = bridge.run("agents", "show", "opencode").stdout
        checked = bridge.run("doctor").stdout
        assert (after["id"], after["source"]) == (before["id"], "stored")
        assert after["isolation"].startswith("isolated (bubblewrap)")
        assert after["entry"] == before["entry"]
        assert after["entry"]["permissions"] == "read-only"
        assert after["entry"]["env"] == ["OWN_KEY"]
        bridge.wait(lambda: bridge.listed() == ["opencode"], "the demo agent is not needed")
        assert FOUND not in shown + checked
        assert "AGENTS_JSON" not in shown
        assert CHANGED not in checked + bridge.log.read_text()


@pytest.mark.long
def test_a_found_agent_says_so_and_is_isolated_by_its_name_alone(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform, "opencode") as bridge:
        found = bridge.agent("opencode")
        session = bridge.open_session("opencode", "say the door is blue")
        bridge.ended(session["id"])
        refused = bridge.http.patch("/api/v1/agents/opencode", json={"model": "x"})
        shown = bridge.run("agents", "show", "opencode").stdout
        listed = bridge.run("agents", "list")

        added = bridge.run("agents", "add", "opencode")

        stored = bridge.agent("opencode")
        again = bridge.http.post("/api/v1/agents", json={"name": "opencode"})
        assert (found["source"], found["id"]) == ("found", "opencode")
        assert FOUND in found["isolation"]
        assert "agents add opencode" in found["isolation"]
        assert refused.status_code == 409
        assert "agents add opencode" in refused.json()["detail"]
        assert FOUND in shown
        assert FOUND in listed.stdout
        assert "AGENTS_JSON" not in str(found) + refused.text + shown + str(listed)
        assert added.stderr.startswith("opencode was added: isolated (bubblewrap)"), added.stderr
        assert (stored["source"], stored["id"]) == ("stored", "opencode")
        assert stored["entry"] == {"driver": "opencode"}
        assert again.status_code == 409
        assert "it got the transcript instead" in recall(bridge, session["id"])
        bridge.restart()
        assert bridge.agent("opencode")["source"] == "stored"
        assert "could not" not in recall(bridge, session["id"], 3)


@pytest.mark.long
def test_the_loss_of_isolation_is_said_until_it_was_seen(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform, "opencode", page=True) as bridge:
        assert bridge.run("agents", "add", "opencode").returncode == 0
        assert bridge.http.post("/api/v1/agents/opencode/acknowledge").status_code == 200

        assert bridge.run("agents", "remove", "opencode", "--yes").returncode == 0

        again = bridge.agent("opencode")
        assert (again["source"], again["id"]) == ("found", "opencode-2")
        assert again["isolation_change"].startswith(OPENED)
        assert bridge.logged(f"opencode: {OPENED}")
        bridge.restart()
        checked = bridge.run("doctor").stdout.splitlines()
        assert bridge.agent("opencode")["isolation_change"].startswith(OPENED)
        assert f"opencode: {OPENED}" in checked[1]
        assert OPENED in page(bridge, "/")
        assert OPENED in page(bridge, "/agents/opencode")
        assert OPENED in bridge.run("agents", "list").stderr

        bridge.http.post("/api/v1/agents/opencode/acknowledge")

        assert bridge.agent("opencode")["isolation_change"] == ""
        assert CHANGED not in page(bridge, "/") + page(bridge, "/agents/opencode")
        assert CHANGED not in bridge.run("doctor").stdout
        bridge.restart()
        assert bridge.agent("opencode")["isolation_change"] == ""


def test_isolation_that_a_setting_takes_away_is_said_by_doctor_before_the_next_start(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform, "opencode") as bridge:
        bridge.restart(AGENTS_JSON=json.dumps({"opencode": {"driver": "opencode"}}))
        bridge.http.post("/api/v1/agents/opencode/acknowledge")
        bridge.stop()
        bridge.settings["AGENTS_JSON"] = ""

        checked = bridge.run("doctor").stdout.splitlines()

        assert f"opencode: {OPENED}" in checked[1]
        bridge.start()
        assert bridge.logged(f"opencode: {OPENED}")
        assert bridge.agent("opencode")["isolation_change"].startswith(OPENED)


@pytest.mark.long
def test_a_found_program_that_was_missing_for_one_start_keeps_its_id_and_its_threads(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform, "opencode", page=True) as bridge:
        session = bridge.open_session("opencode", "say the door is blue")
        bridge.ended(session["id"])
        before = bridge.rows("select id, name from agent where name = 'opencode'")

        (bridge.bin / "opencode").unlink()
        bridge.restart()
        bridge.wait(lambda: bridge.logged("opencode is not on PATH any more."), "it is not told")
        assert "opencode" not in bridge.listed()
        bridge.restart("opencode")

        assert bridge.agent("opencode")["default"]
        assert bridge.rows("select id, name from agent where name = 'opencode'") == before
        assert "blue" in recall(bridge, session["id"])
        assert "(removed)" not in page(bridge, f"/t/web/{session['thread']}")


@pytest.mark.long
def test_a_thread_with_the_demo_agent_goes_on_when_a_real_one_is_found(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform, page=True) as bridge:
        session = bridge.open_session("demo", "say the door is blue")
        bridge.ended(session["id"])

        bridge.restart("opencode")

        demo = bridge.agent("demo")
        talk = bridge.http.get("/api/v1/conversations").json()["items"][0]
        assert (demo["source"], demo["visible"], demo["default"]) == ("demo", False, False)
        assert bridge.agent("opencode")["default"]
        assert "blue" in recall(bridge, session["id"])
        assert "(removed)" not in page(bridge, f"/t/web/{session['thread']}")
        assert 'data-pick="demo"' not in page(bridge, "/")
        assert "demo:" not in bridge.run("doctor").stdout.partition("configuration")[2]
        assert bridge.http.delete(f"/api/v1/conversations/{talk['id']}").status_code == 204
        bridge.restart()
        bridge.wait(lambda: bridge.listed() == ["opencode"], "the demo agent is not needed")


def test_doctor_tells_a_missing_command_once_while_the_bridge_runs(
    tmp_path: Path, platform: Platform
) -> None:
    with Unnamed(tmp_path, platform) as bridge:
        bridge.http.post("/api/v1/agents", json={"name": "gone", "command": "no-such-program"})

        findings = json.loads(bridge.run("doctor", "--json").stdout)["findings"]

        told = [each for each in findings if "no-such-program" in each["reason"]]
        assert [each["reason"] for each in told] == ["'no-such-program' was not found on PATH"]


def test_a_new_thread_goes_to_an_agent_that_is_ready(tmp_path: Path, platform: Platform) -> None:
    missing = {"command": "no-such-program", "sandbox": "none"}
    agents: dict[str, Any] = {"first": missing, "second": {"driver": "demo", "sandbox": "none"}}
    with Unnamed(
        tmp_path, platform, page=True, settings={"AGENTS_JSON": json.dumps(agents)}
    ) as bridge:
        start = page(bridge, "/")

        assert bridge.agent("first")["default"]
        assert '<option value="second" selected' in start
