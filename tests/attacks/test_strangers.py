"""Strangers who hold connections open and send large bodies at once: others are answered soon."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.bridge import ADMIN_TOKEN
from tests.support.github import GithubWorld

SILENT = 3000
SENDERS = 24
BODY_BYTES = 24 * 1024**2
HANDLES = 2048
"""Of the bridge: fewer than the connections, which must leave room for everything else."""
SECONDS = 30.0
SOON = 1.0
"""Seconds in which others are answered: Slack gives up after three."""
HEAD = "POST /webhooks/github/claude HTTP/1.1\r\nHost: any\r\nContent-Length: {size}\r\n{more}\r\n"
SIGNATURE = f"X-Hub-Signature-256: sha256={'0' * 64}\r\n"
PRIORITY = -15
"""How much time is measured must not depend on how many tests run at once."""
PATHS = ("/healthz", "/readyz", "/api/v1/agents")
CLIENT = """
import http.client, select, sys
port, token, seconds, *paths = sys.argv[1:]
answers = 0
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for path in paths:
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=float(seconds))
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().status == 200, path
        connection.close()
        answers += 1
print(answers)
"""
"""A client that comes anew for each question and waits for one second; the end of input ends it."""


@pytest.fixture
def handles() -> Iterator[None]:
    """Have enough of them in this process, which holds the other ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def prefer(world: GithubWorld) -> None:
    """Leave the bridge few handles, and let it run before other tests where that can be said."""
    assert world.bridge.process is not None
    pid = world.bridge.process.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (HANDLES, HANDLES))
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), PRIORITY)


def connect(world: GithubWorld) -> socket.socket:
    return socket.create_connection(("127.0.0.1", world.bridge.port), SECONDS)


def stay_silent(world: GithubWorld, opened: ExitStack) -> None:
    """Open connections; every other one sends half a head."""
    for each in range(SILENT):
        peer = opened.enter_context(connect(world))
        peer.sendall(b"POST /webhooks/github/claude HTTP/1.1\r\nHost:" * (each % 2))


def send_body(world: GithubWorld, more: str) -> None:
    """Send a large body without its end, as far as the bridge takes it."""
    with suppress(OSError), connect(world) as peer:
        peer.sendall(HEAD.format(size=BODY_BYTES, more=more).encode())
        for _ in range(BODY_BYTES // 2**20 - 1):
            peer.sendall(b"x" * 2**20)


@contextmanager
def another_client(world: GithubWorld) -> Iterator[None]:
    """Ask the bridge all the time, from a process that has nothing else to do."""
    line = [sys.executable, "-c", CLIENT, str(world.bridge.port), ADMIN_TOKEN, str(SOON), *PATHS]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, client.pid, PRIORITY)
        assert client.stdout is not None
        assert client.stdout.readline() == b"begun\n"
        yield
        answers, _ = client.communicate(timeout=SECONDS)
    assert client.returncode == 0
    assert int(answers) > len(PATHS)


@pytest.mark.long
@pytest.mark.usefixtures("handles")
def test_bodies_and_silent_connections_together_keep_nobody_waiting_for_a_second(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path) as world, ExitStack() as opened:
        world.bridge.wait(lambda: world.bridge.http.get("/readyz").is_success, "it is not ready")
        prefer(world)
        with another_client(world), ThreadPoolExecutor(SENDERS) as strangers:
            stay_silent(world, opened)
            kinds = ["", SIGNATURE] * (SENDERS // 2)
            sent = [strangers.submit(send_body, world, more) for more in kinds]
            issue = world.issue("@claude-bridge say Hello")
            world.wait_for(issue, "Hello")
            for each in sent:
                each.result(SECONDS)
