"""`agents probe` and `agents login` as a person uses them: real commands, real agents."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.scenarios.test_command_line import Machine
from tests.support.bridge import DEMO

pytestmark = pytest.mark.one_database

FOUND = find_bubblewrap(os.environ["PATH"])

# An agent that wants to be logged in by a program of its own, in a terminal.
FAKE = """
import json, os, sys

key = os.path.join(os.environ["HOME"], "key")

if sys.argv[1:] in (["--login"], ["--cli", "auth", "login", "--claudeai"]):
    print("Open https://example.com/login and paste the code:", flush=True)
    open(key, "w").write(input())
    print("network", os.readlink("/proc/self/ns/net"))
    sys.exit()

for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), {}
    if method == "initialize":
        terminal = {"id": "tui", "name": "Paste a code", "type": "terminal", "args": ["--login"]}
        shy = sys.argv[0].endswith("claude-agent-acp")
        answer = {"protocolVersion": 1, "authMethods": [] if shy else [terminal]}
    reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer}
    if method == "session/new" and not os.path.exists(key):
        del reply["result"]
        reply["error"] = {"code": -32000, "message": "Authentication required"}
    elif method == "session/new":
        reply["result"] = {"sessionId": "s1"}
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    fake = tmp_path / "fake_agent.py"
    fake.write_text(FAKE)
    claude = tmp_path / "claude-agent-acp"
    claude.write_text(f"#!{sys.executable}\n{FAKE}")
    claude.chmod(0o700)
    agents = {
        "claude": {"command": [str(claude)], "sandbox": "none"},
        "demo": {"command": DEMO, "driver": "demo", "sandbox": "none"},
        "fake": {"command": [sys.executable, str(fake)], "sandbox": "none"},
        "apart": {"command": [sys.executable, str(fake)]},
    }
    return Machine(tmp_path, {"AGENTS_JSON": json.dumps(agents)})


def test_a_probe_shows_a_card_and_the_list_knows_it(machine: Machine) -> None:
    probed = machine.run("agents", "probe", "demo")
    listed = machine.run("agents", "list").stdout.splitlines()

    assert probed.returncode == 0, probed.stderr
    header, *rows = probed.stdout.splitlines()
    assert header.split() == ["STEP", "VERDICT", "SECONDS", "REMARK"]
    assert {row.split()[1] for row in rows} == {"works"}
    assert [row.split()[0] for row in rows][:4] == ["initialize", "new", "mode", "prompt"]
    assert "11 of 11 work" in probed.stderr
    assert "Good to know: Follows the lines of a message" in probed.stderr
    assert not list((machine.folder / "data" / "workspaces").iterdir())
    assert listed[2].endswith("11 of 11 work")
    assert listed[3].endswith("not yet")


def test_an_agent_that_fails_for_want_of_a_login_is_logged_in_by_its_own_program(
    machine: Machine,
) -> None:
    probed = machine.run("agents", "probe", "fake")
    login = machine.run("agents", "login", "fake", stdin="swordfish\n")

    assert probed.returncode == 1
    assert "Traceback" not in probed.stderr
    assert "login needed" in probed.stdout
    assert "agent-bridge agents login fake" in probed.stdout
    assert login.returncode == 0, login.stderr
    assert "https://example.com/login" in login.stdout
    assert "fake is logged in." in login.stderr
    assert (machine.folder / "data" / "homes" / "fake" / "key").read_text() == "swordfish"


def test_an_agent_that_offers_no_login_over_acp_is_logged_in_by_what_is_known_of_its_program(
    machine: Machine,
) -> None:
    login = machine.run("agents", "login", "claude", stdin="swordfish\n")

    assert login.returncode == 0, login.stderr
    assert "https://example.com/login" in login.stdout
    assert (machine.folder / "data" / "homes" / "claude" / "key").read_text() == "swordfish"


@pytest.mark.skipif(isinstance(FOUND, Unavailable), reason="bubblewrap does not work here")
def test_a_login_is_in_the_network_of_this_machine_where_a_browser_can_call_it_back(
    machine: Machine,
) -> None:
    login = machine.run("agents", "login", "apart", stdin="swordfish\n")

    assert login.returncode == 0, login.stderr
    assert f"network {Path('/proc/self/ns/net').readlink()}" in login.stdout


def test_an_agent_without_a_login_says_what_to_do_instead(machine: Machine) -> None:
    demo = machine.run("agents", "login", "demo")

    assert demo.returncode == 1
    assert "offers no login over ACP. Not needed" in demo.stderr
    assert demo.stderr.count("\n") == 1
