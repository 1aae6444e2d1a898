"""Connections that say nothing: however many there are, people are served and agents start."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import BridgeProcess
from tests.support.platform import Platform

HANDLES = 4096
"""A usual limit, below which 3,000 connections and an agent do not fit twice."""
SECONDS = 5.0
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
