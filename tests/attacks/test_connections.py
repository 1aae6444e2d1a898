"""Connections that say nothing: however many there are, people are served and agents start."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import BridgeProcess
from tests.support.platform import Platform

HANDLES = 4096
"""A usual limit, below which 3,000 connections and an agent do not fit twice."""
SECONDS = 5.0
SOON = 1.0
"""Seconds in which others are answered: Slack gives up after three."""
WAITING = Path("/proc/sys/net/core/somaxconn")
"""How many connections the kernel lets wait for a program."""
CLIENTS = 20
PATIENCE = 30.0
LINE = "connections are open, the latest from 127.0.0.1"


@pytest.fixture(autouse=True)
def _handles() -> Iterator[None]:
    """Have enough of them in this process, which holds the other ends."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def silent_connections(bridge: BridgeProcess, number: int) -> Iterator[None]:
    """Open connections; every other one sends half a head."""
    with ExitStack() as opened:
        for each in range(number):
            peer = socket.create_connection(("127.0.0.1", bridge.port), SECONDS)
            opened.enter_context(peer)
            peer.sendall(b"POST /webhooks/hook/demo HTTP/1.1\r\nHost:" * (each % 2))
        yield


def ask(bridge: BridgeProcess) -> int:
    """Ask the bridge as a person who comes now."""
    return httpx.get(f"http://127.0.0.1:{bridge.port}/healthz", timeout=SECONDS).status_code


def test_silent_connections_keep_nobody_out(tmp_path: Path) -> None:
    with Platform() as platform, BridgeProcess(tmp_path, platform) as bridge:
        with silent_connections(bridge, 1300):
            assert ask(bridge) == 200

        assert bridge.log.read_text().count(LINE) == 1


@pytest.mark.skipif(
    not WAITING.exists() or int(WAITING.read_text()) < 4096, reason="the kernel's queue is short"
)
def test_those_who_come_while_3000_connections_open_at_once_are_answered_within_a_second(
    tmp_path: Path,
) -> None:
    """The bridge accepts none meanwhile; whom the kernel loses comes again a second later."""
    with Platform() as platform, BridgeProcess(tmp_path, platform) as bridge, ExitStack() as opened:
        before = worked(bridge_pid(bridge))
        with busy(bridge_pid(bridge)):
            for each in range(3000):
                peer = opened.enter_context(socket.socket())
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", bridge.port))
                with suppress(OSError):  # the queue is full
                    peer.sendall(b"POST /webhooks/hook/demo HTTP/1.1\r\nHost:" * (each % 2))
            clients = [connect(bridge, opened) for _ in range(CLIENTS)]

        answers = [client.recv(100) for client in clients]
        seconds = worked(bridge_pid(bridge)) - before

    # What it takes on a machine that has nothing else to do, whatever else runs here.
    assert seconds < SOON
    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 200"] * CLIENTS


def connect(bridge: BridgeProcess, opened: ExitStack) -> socket.socket:
    """Come as somebody who is let in within a second or gives up, and ask."""
    client = opened.enter_context(socket.create_connection(("127.0.0.1", bridge.port), SOON))
    client.settimeout(PATIENCE)
    client.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{bridge.port}\r\n\r\n".encode())
    return client


@contextmanager
def busy(pid: int) -> Iterator[None]:
    """Keep a process from accepting anything."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def worked(pid: int) -> float:
    """Tell how many seconds of a processor a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_3000_silent_connections_keep_nobody_out_and_no_agent_from_starting(
    tmp_path: Path,
) -> None:
    """Without a bound they took all handles, and no agent started any more."""
    limited = ["prlimit", f"--nofile={HANDLES}:{HANDLES}"]
    with Platform() as platform:
        bridge = BridgeProcess(tmp_path, platform, wrapper=limited)
        with bridge, silent_connections(bridge, 3000):
            assert ask(bridge) == 200
            held = len(list(Path(f"/proc/{bridge_pid(bridge)}/fd").iterdir()))
            assert bridge.say("t1", "say hello") == 200
            bridge.wait(
                lambda: bridge.rows("select state from turn") == [("done",)], "no turn ended"
            )

    assert held < HANDLES // 2


def bridge_pid(bridge: BridgeProcess) -> int:
    assert bridge.process is not None
    return bridge.process.pid
