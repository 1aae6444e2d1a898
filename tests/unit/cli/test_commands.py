"""What can be typed: help at once, usage errors as usual, every other failure in one line."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.agents.isolation import AS_ROOT, AS_YOU
from app.cli.application import app
from app.model.inbound import Decision, Delivery, Heard
from app.model.keys import PlaceKey
from app.model.types import BridgeSessionRequest, Speaker
from app.store.database import Database, sqlite_url
from app.store.stores import Stores

HEAVY = ("pydantic", "rich", "sqlalchemy", "fastapi", "httpx", "acp", "app.config", "app.main")
Run = Callable[..., Result]


async def begin(stores: Stores, thread: str, agent: str) -> None:
    """Keep one message to an agent, as the intake does."""
    arrived = Delivery(f"web:{agent}", "d1", None, {}, b"", 0.0)
    heard = Heard(PlaceKey("web", thread), thread, "m1", Speaker("o", "operator"), "hi")
    request = BridgeSessionRequest(
        external_session_id=thread,
        service_name="web",
        agent_name=agent,
        prompt=heard.text,
        speaker=heard.speaker,
        message_id=heard.message_id,
        surface=heard.place,
    )
    await stores.deliveries.add(arrived)
    (kept,) = await stores.deliveries.pending(arrived.adapter, 0)
    await stores.decisions.accept(Decision(kept.seq, heard, "done", "mentioned", (request,)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in an empty folder with nothing but these settings."""

    def invoke(*words: str, settings: Mapping[str, str] | None = None) -> Result:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path / "home"),
            "AGENT_BRIDGE_ENV_FILE": os.devnull,
            "DATA_DIR": str(tmp_path / "data"),
            **(settings or {}),
        }
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            patch.setattr("os.environ", environment)
            return CliRunner().invoke(app, words)

    return invoke


def test_nothing_heavy_is_imported_before_a_command_needs_it() -> None:
    look = f"import sys, app.cli; print([name for name in {HEAVY} if name in sys.modules])"

    found = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, timeout=30, check=True
    )

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "words",
    [(), ("ask",), ("serve",), ("login",), ("doctor",), ("agents", "list"), ("sessions", "show")],
)
def test_every_command_has_help(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, "--help")

    assert result.exit_code == 0
    assert "Usage: " in result.stdout


@pytest.mark.parametrize("words", [(), ("agents",), ("sessions",)])
def test_every_line_of_help_is_whole_and_h_is_enough(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words, "-h")

    assert result.exit_code == 0
    assert "Commands:" in result.stdout
    assert "...\n" not in result.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("command", ["serve", "ask", "doctor", "manifest"])
def test_help_has_examples_that_can_be_copied(run: Run, command: str) -> None:
    shown = run(command, "-h").stdout.partition("Examples:\n")[2]

    assert shown
    assert all(line.startswith(f"    agent-bridge {command}") for line in shown.splitlines())


def test_the_shell_can_complete_commands(run: Run) -> None:
    assert "--install-completion" in run("-h").stdout


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").stdout.startswith("agent-bridge 0.")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("ask",), "WORDS are missing"),
        (("ask", "demo", "  "), "the prompt is empty"),
        (("ask", "demo", "x" * 100_001), "at most 100000 characters"),
        (("ask", "demo", "hi", "--thread", "a b"), "a thread name has only letters"),
        (("ask", "demo", "hi", "--allow", "all"), "'once', 'reject'"),
        (("sessions", "show", "web:t1:demo"), "'ID'"),
        (("sessions", "list", "--state", "sleeping"), "'parked'"),
        (("sing",), "No such command"),
    ],
)
def test_a_wrong_use_is_told_with_status_2(run: Run, words: tuple[str, ...], reason: str) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "words",
    [("serve",), ("ask", "demo", "hi"), ("login",), ("agents", "list"), ("sessions", "list")],
)
def test_a_broken_configuration_is_one_line_without_the_value(
    run: Run, words: tuple[str, ...]
) -> None:
    result = run(*words, settings={"AGENTS_JSON": '{"demo": "hunter22hunter22"'})

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("agent-bridge: AGENTS_JSON: ")
    assert result.stderr.count("\n") == 1
    assert "hunter22" not in result.stderr


def test_an_unknown_agent_is_one_line_with_the_way_to_the_known_ones(run: Run) -> None:
    result = run("ask", "nobody", "hi")

    assert result.exit_code == 1
    assert result.stderr == (
        "agent-bridge: there is no agent 'nobody'. See `agent-bridge agents list`.\n"
    )


def test_a_name_alone_is_not_a_prompt(run: Run) -> None:
    result = run("ask", "demo")

    assert result.exit_code == 1
    assert result.stderr == (
        "agent-bridge: nothing is asked. Write `agent-bridge ask demo WORDS`.\n"
    )


def test_agents_are_listed_without_a_bridge_and_nothing_is_made(run: Run, tmp_path: Path) -> None:
    agents = {
        "demo": {"command": "agent-bridge-demo-agent", "sandbox": "none"},
        "x": {"command": "no-such", "sandbox": "none"},
    }

    result = run("agents", "list", settings={"AGENTS_JSON": json.dumps(agents)})

    lines = result.stdout.splitlines()
    columns = "agent name state command version isolation services from probe"
    assert lines[0].lower().split() == columns.split()
    assert lines[1].startswith("demo (default)  Demo agent  ready")
    assert "not isolated" in lines[1]
    assert lines[2].split()[:3] == ["x", "x", "unavailable"]
    assert "no-such (not found)" in lines[2]
    assert list(tmp_path.iterdir()) == []


def test_why_an_agent_cannot_work_and_what_it_can_read_are_told_below_the_list_with_remedies(
    run: Run,
) -> None:
    entry = {"command": "no-such", "sandbox": "none"}

    told = run("agents", "list", settings={"AGENTS_JSON": json.dumps({"a": entry, "b": entry})})

    risk = AS_ROOT if os.geteuid() == 0 else AS_YOU
    assert told.stderr == (
        "! a: 'no-such' was not found on PATH. Check its command in AGENTS_JSON.\n"
        "! b: 'no-such' was not found on PATH. Check its command in AGENTS_JSON.\n"
        f"! a, b: not isolated: it {risk}. "
        'To isolate it, remove "sandbox": "none" from its entry in AGENTS_JSON.\n'
    )


def test_lists_and_doctor_are_json_for_scripts(run: Run, tmp_path: Path) -> None:
    settings = {"AGENTS_JSON": json.dumps({"x": {"command": "no-such", "sandbox": "none"}})}

    agents = run("agents", "list", "--json", settings=settings)
    sessions = run("sessions", "list", "--json", settings=settings)
    broken = run("doctor", "--json", settings={"PORT": "eighty"})

    (agent,) = json.loads(agents.stdout)
    assert (agent["name"], agent["found"], agent["probe"]) == ("x", False, "not yet")
    assert agent["availability"] == {
        "state": "unavailable",
        "reason": "'no-such' was not found on PATH.",
        "remedy": "Check its command in AGENTS_JSON.",
    }
    assert agents.stderr == ""
    assert json.loads(sessions.stdout) == []
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["healthy"] is False
    problem = json.loads(broken.stdout)["findings"][-1]
    assert set(problem) == {"verdict", "what", "reason", "remedy"}
    assert problem["verdict"] == "problem"
    assert list(tmp_path.iterdir()) == []


def test_before_the_first_start_there_are_no_sessions(run: Run, tmp_path: Path) -> None:
    listed, shown = run("sessions", "list"), run("sessions", "show", "1")

    assert (listed.exit_code, listed.stdout) == (0, "")
    assert "Start one with `agent-bridge ask`" in listed.stderr
    assert (shown.exit_code, shown.stderr) == (1, "agent-bridge: there is no session 1\n")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_none_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "bridge.db").write_text("this is no database at all" * 50)

    result = run("sessions", "list")

    assert result.exit_code == 1
    assert "bridge.db cannot be read: file is not a database" in result.stderr
    assert result.stderr.count("\n") == 1


def test_doctor_tells_what_is_wrong_with_the_configuration(run: Run) -> None:
    result = run("doctor", settings={"AGENTS_JSON": '{"demo": {"comand": "x"}}'})

    assert result.exit_code == 1
    assert "problem  configuration: AGENTS_JSON: agent 'demo' has an unknown key" in result.stdout
    assert "→ Did you mean command?" in result.stdout


def test_conversations_are_listed_from_the_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    database = Database(sqlite_url(tmp_path / "data"))
    database.open()
    asyncio.run(begin(Stores.on(database, lambda: 0.0), "t1", "demo"))
    database.close()

    listed = run("sessions", "list", "--agent", "demo", "--state", "queued")
    others = run("sessions", "list", "--agent", "other")
    shown = run("sessions", "show", "1", "--json")

    assert [line.split()[:4] for line in listed.stdout.splitlines()] == [
        ["ID", "STATE", "AGENT", "THREAD"],
        ["1", "queued", "demo", "t1"],
    ]
    row = listed.stdout.splitlines()[1]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d [A-Z+-]", row), "a time has its zone"
    assert json.loads(shown.stdout)["thread"] == "t1"
    assert [row["text"] for row in json.loads(shown.stdout)["transcript"]] == ["hi"]
    assert others.stdout == ""
