"""Agents call tools of the bridge: over HTTP, over the relay, and by the command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.hook import message
from tests.support.observe import demo
from tests.support.platform import Platform
from tests.support.tools import Tooled

pytestmark = pytest.mark.one_database

FOUND = find_bubblewrap(os.environ["PATH"])
APART = "none" if isinstance(FOUND, Unavailable) else "bubblewrap"
DOORS = ("http", "stdio", "apart", "skilled")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tooled]:
    agents = {
        "http": demo(),
        "stdio": demo("no-http"),
        "apart": demo(sandbox=APART),
        "skilled": demo(sandbox=APART, tool_exposure="skills"),
        "both": demo(sandbox=APART, tool_exposure="mixed", mode="free"),
    }
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("tools")
        with Tooled(folder, platform, agents=agents) as bridge:
            yield bridge


@pytest.mark.parametrize("agent", DOORS)
def test_an_agent_lists_and_calls_its_tools(bridge: Tooled, agent: str) -> None:
    place = f"calls of {agent}"

    listed = bridge.ask(place, "tools", agent)["text"]
    called = bridge.ask(place, 'tool echo {"text": "hello"}', agent)["text"]

    assert "echo: Returns what it is given." in listed
    assert "refuse: Refuses." in listed
    result = json.loads(called)
    assert (result["text"], result["times"]) == ("hello", 1)
    assert result["session"] == bridge.session(place, agent)


@pytest.mark.parametrize("agent", DOORS)
def test_an_agent_is_told_why_a_call_did_not_work(bridge: Tooled, agent: str) -> None:
    said = bridge.ask(
        f"refusals of {agent}",
        'tool refuse {"text": "this"}\ntool break {"text": "in pieces"}\n'
        'tool echo {"times": 3}\ntool nothing {}',
        agent,
    )["text"]

    assert "Not this. Ask for something else." in said
    assert "It failed inside the bridge." in said
    assert "in pieces" not in said
    assert "'text' is a required property" in said
    assert "There is no tool 'nothing' for you." in said


def test_an_agent_without_servers_is_told_of_the_command_and_its_files(bridge: Tooled) -> None:
    told = bridge.ask("told", "instructions", "skilled")["text"]

    assert "Run `agent-bridge-tool NAME --KEY VALUE` in a shell." in told
    assert "- echo: Returns what it is given." in told
    assert "agent-bridge-tool" not in bridge.ask("told", "instructions", "apart")["text"]


@pytest.mark.skipif(APART == "none", reason="a folder is read-only only with bubblewrap")
def test_a_command_and_a_file_for_each_tool_are_outside_of_the_repository(bridge: Tooled) -> None:
    number = bridge.begin(
        "files",
        "run cat $AGENT_BRIDGE_SKILLS/echo-loud/SKILL.md\nrun agent-bridge-tool echo --help\n"
        'run printf \'{"text": "piped"}\' | agent-bridge-tool echo -\n'
        "run agent-bridge-tool echo nonsense\nrun echo > $AGENT_BRIDGE_SKILLS/new\n"
        "run agent-bridge-tool echo --text 'by key' --times=7",
        "both",
    )
    said = bridge.end("files", number, "both")["text"]

    assert "name: echo-loud\n" in said
    assert "agent-bridge-tool echo_loud --KEY VALUE" in said
    assert '"maximum": 9' in said
    assert '"text": "piped"' in said
    assert '"text": "by key"' in said
    assert '"times": 7' in said
    assert "the arguments are not JSON" in said
    assert "Read-only file system" in said
    assert list(bridge.workspace("both", bridge.session("files", "both")).iterdir()) == []


@pytest.mark.parametrize("agent", DOORS)
def test_stop_ends_a_call_that_waits(bridge: Tooled, agent: str) -> None:
    place, wait = f"stop of {agent}", bridge.folder / f"wait-{agent}"
    number = bridge.begin(place, f'tool wait {{"text": "{wait}"}}', agent)
    bridge.wait(wait.exists, "the call does not run")

    assert bridge.deliver(message(place, "stop", agent), agent=agent) == 200

    assert bridge.end(place, number, agent)["state"] == "stopped"
    bridge.wait(Path(f"{wait}.cancelled").exists, "the call goes on")


@pytest.mark.skipif(APART == "none", reason="folders are hidden only with bubblewrap")
def test_an_agent_sees_its_own_door_alone_and_cannot_remove_it(bridge: Tooled) -> None:
    bridge.ask("neighbour", "say hello", "skilled")
    folder = bridge.data_dir / "tools"
    said = bridge.ask("doors", f"run ls {folder}\nrun rm -r {folder}/*", "both")["text"]

    seen = [path.name for path in folder.iterdir() if path.name in said]
    assert len(seen) == 1
    assert len(list(folder.iterdir())) > 1
    assert (folder / seen[0] / "tools").exists()


def test_a_door_closes_with_its_process(bridge: Tooled) -> None:
    doors = bridge.data_dir / "tools"
    before = set(doors.glob("*"))  # the first agent makes the folder
    bridge.begin("crash", "tell here\nhold over\ncrash", "http")
    bridge.held("crash", "here", "http")
    (made,) = set(doors.glob("*")) - before

    bridge.release("crash", "over", "http")

    bridge.wait(lambda: not made.exists(), "the door stays open")
