"""Processes that a command leaves behind go on after a turn, or after a stop: none of them does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import lingering
from tests.support.bridge import SECONDS
from tests.support.ordinary import LOOK_SECONDS, USERS, Running, Server, agents, laid_out
from tests.support.variants import quick

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

WAYS = quick(1, ["daemon", "sibling", "nested", "session", "orphan"])


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        shutil.copy(lingering.__file__, server.folder)
        yield server


@pytest.fixture(scope="module")
def bridge(server: Server) -> Iterator[Running]:
    entries = {
        "demo": server.demo(mode="free", sandbox="bubblewrap"),
        "open": server.demo(mode="free", sandbox="none"),
    }
    with server.serving(AGENTS_JSON=agents(**entries)) as bridge:
        yield bridge


def leave(server: Server, how: str, name: str) -> str:
    """Write the line that makes an agent run a command that leaves a process."""
    python = server.checkout / ".venv" / "bin" / "python"
    return f"run exec {python} {server.folder / 'lingering.py'} {how} {name}"


def alive(words: str) -> list[str]:
    """List the processes with some words in their command or environment, none that is dead."""
    return [each.name for each in Path("/proc").iterdir() if _holds(each, words.encode())]


def _holds(process: Path, words: bytes) -> bool:
    try:
        kept = [(process / name).read_bytes() for name in ("cmdline", "environ")]
    except OSError:
        return False
    return any(words in each for each in kept)


def wait(true: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, problem
        time.sleep(LOOK_SECONDS)


@pytest.mark.parametrize("agent", ["demo", "open"])
@pytest.mark.parametrize("how", WAYS)
def test_what_a_command_leaves_in_the_background_ends_with_its_turn(
    bridge: Running, server: Server, how: str, agent: str
) -> None:
    name = f"left-by-{how}-of-{agent}-{server.uid}"

    said = bridge.ask(leave(server, how, name), agent)

    assert "ended with status 0" in said
    assert alive(name) == []


@pytest.mark.parametrize("agent", ["demo", "open"])
def test_stop_ends_the_agent_and_all_that_it_started_and_its_conversation_goes_on(
    bridge: Running, server: Server, agent: str
) -> None:
    name = f"left-before-stop-of-{agent}-{server.uid}"
    lines = ["say remember the lighthouse", leave(server, "daemon", name), "hold for-ever"]
    begun = bridge.http.post("/api/v1/sessions", json={"agent": agent, "text": "\n".join(lines)})
    session, thread = begun.json()["id"], begun.json()["thread"]
    folder = server.data_dir / "workspaces" / f"{session}-{agent}"
    wait((folder / name).exists, "the command was not run")
    home = str(server.data_dir / "session-homes" / f"{session}-{agent}")
    assert alive(home)

    bridge.http.post(f"/api/v1/sessions/{session}/cancel")
    wait(lambda: states(bridge, session) == ["cancelled"], "it was not stopped")

    assert alive(home) == []
    assert alive(name) == []
    assert "the lighthouse" in bridge.ask("recall", agent, thread=thread)


def states(bridge: Running, session: int) -> list[str]:
    turns = bridge.http.get(f"/api/v1/sessions/{session}").json()["turns"]
    return [turn["state"] for turn in turns]
