"""An agent whose own process works between turns: it reaches no network, no remote and no tool."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.children.sandbox import Bubblewrap, find_bubblewrap
from tests.support.bridge import ROOT
from tests.support.hook import message
from tests.support.observe import demo
from tests.support.outside import PUBLIC
from tests.support.platform import Platform
from tests.support.studio import BRANCH, REPOSITORY, studio
from tests.support.tools import Tooled

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    not (isinstance(FOUND, Bubblewrap) and FOUND.own_network),
    reason="bubblewrap gives no network of its own here",
)
RESTLESS = [sys.executable, str(ROOT / "tests" / "support" / "restless_agent.py")]
GET = """
import urllib.request
try:
    say(urllib.request.urlopen("http://public.example/{path}", timeout=30).status)
except OSError as error:
    say(f"no connection: {{error}}")
"""
HOLD = """
import os, socket
from urllib.parse import urlsplit
from pathlib import Path
proxy = urlsplit(os.environ["HTTPS_PROXY"])
line = socket.create_connection((proxy.hostname, proxy.port), 30)
line.sendall(b"CONNECT public.example:443 HTTP/1.1\\r\\n\\r\\n")
Path("answer").write_bytes(line.recv(100))
Path("answer").rename("tunnel")
say("cut" if line.recv(1) == b"" else "more")
"""
CALL = """
import json, subprocess
command = ["agent-bridge-tool", "echo", "--text", "hello"]
say(subprocess.run(command, capture_output=True, text=True))
"""
PUSH = """
import subprocess
commit = ["git", "commit", "--quiet", "--allow-empty", "--message", "Secretly"]
subprocess.run(commit, check=True)
say(subprocess.run(["git", "push", "origin", "HEAD"], capture_output=True, text=True).stderr)
"""


class Handler(BaseHTTPRequestHandler):
    """Remembers what was asked for."""

    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def public() -> Iterator[ThreadingHTTPServer]:
    Handler.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def bridge(
    tmp_path_factory: pytest.TempPathFactory, public: ThreadingHTTPServer
) -> Iterator[Tooled]:
    entry = demo(command=RESTLESS, sandbox="bubblewrap", mode="free", tool_exposure="mixed")
    names, routes = {"public.example": [PUBLIC]}, {PUBLIC: public.server_port}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("restless")
        agents = {"demo": entry}
        with Tooled(folder, platform, agents=agents, names=names, routes=routes) as bridge:
            yield bridge


def run(bridge: Tooled, place: str, name: str, code: str) -> str:
    """Let the agent's own process do something now; returns what it says."""
    workspace = bridge.workspace(session=bridge.session(place))
    prepare(workspace, name, code)
    result = workspace / f"{name}.result"
    bridge.wait(result.exists, f"{name} does not end", 60)
    return result.read_text()


def prepare(workspace: Path, name: str, code: str) -> None:
    unfinished = workspace / f"{name}.new"
    unfinished.write_text(code)
    unfinished.rename(workspace / f"{name}.errand")


def test_an_agent_reaches_the_network_and_tools_in_each_of_its_turns_and_never_between(
    bridge: Tooled,
) -> None:
    bridge.ask("all", "say hello")
    pids = bridge.agent_pids()
    idle = (
        run(bridge, "all", "idle-get", GET.format(path="idle")),
        run(bridge, "all", "idle-call", CALL),
    )
    number = bridge.begin("all", "tell here\nhold over")
    bridge.held("all", "here")
    busy = (
        run(bridge, "all", "busy-get", GET.format(path="busy")),
        run(bridge, "all", "busy-call", CALL),
    )
    bridge.release("all", "over")
    bridge.end("all", number)

    assert idle[0].startswith("no connection")
    assert "Tools work only during your turn" in idle[1]
    assert busy[0] == "200"
    assert '"text": "hello"' in busy[1].replace("\\", "")
    assert Handler.seen == ["/busy"]
    assert pids & bridge.agent_pids()


def test_a_connection_that_is_open_at_the_end_of_a_turn_is_cut(bridge: Tooled) -> None:
    number = bridge.begin("tunnel", "tell here\nhold over")
    bridge.held("tunnel", "here")
    workspace = bridge.workspace(session=bridge.session("tunnel"))
    prepare(workspace, "hold", HOLD)
    bridge.wait((workspace / "tunnel").exists, "no tunnel was opened", 60)
    assert b" 200 " in (workspace / "tunnel").read_bytes()

    bridge.release("tunnel", "over")
    bridge.end("tunnel", number)

    bridge.wait((workspace / "hold.result").exists, "the tunnel is still open", 60)
    assert (workspace / "hold.result").read_text() == "cut"


def test_what_one_person_left_calls_no_tool_in_the_turn_of_another(bridge: Tooled) -> None:
    wait = "while [ ! -e go ]; do sleep 0.01; done"
    call = "until agent-bridge-tool echo --text stolen > stolen; do sleep 0.01; done"
    left = f"setsid sh -c '{wait}; {call}' > /dev/null 2>&1 &"
    bridge.ask("shared", f"run {left}", speaker="Eve")
    workspace = bridge.workspace(session=bridge.session("shared"))
    (workspace / "go").touch()

    event = message("shared", "\n".join(['tool echo {"text": "mine"}'] * 5), "demo", speaker="Ann")
    assert bridge.deliver(event, agent="demo") == 200
    bridge.end("shared", 1)

    assert not (workspace / "stolen").exists()


def test_a_push_between_turns_is_refused_in_words_and_changes_nothing(tmp_path: Path) -> None:
    with studio(tmp_path, entry={"command": RESTLESS}) as office:
        office.tell("run echo 1 > one.txt")
        before = office.server.head(REPOSITORY, BRANCH)

        prepare(office.workspace(), "push", PUSH)
        result = office.workspace() / "push.result"
        office.world.bridge.wait(result.exists, "the push does not end", 60)

        assert "Pushes work only during your turn." in result.read_text()
        assert office.server.head(REPOSITORY, BRANCH) == before
        office.tell("run echo 2 > two.txt")
        assert office.show("two.txt").strip() == "2"
