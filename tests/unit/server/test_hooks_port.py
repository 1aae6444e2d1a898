"""Webhooks on their own port: there nothing else is served, and nowhere else are they taken."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import ADMIN_TOKEN, BridgeProcess
from tests.support.hook import message, request
from tests.support.platform import Platform

PATH = "/webhooks/hook/demo"


@pytest.fixture(scope="module")
def hooks_port() -> Iterator[int]:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield reserved.getsockname()[1]


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, hooks_port: int) -> Iterator[BridgeProcess]:
    folder: Path = tmp_path_factory.mktemp("hooks")
    with (
        Platform() as platform,
        BridgeProcess(folder, platform, settings={"HOOKS_PORT": str(hooks_port)}) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def hooks(hooks_port: int) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{hooks_port}",
        headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
        trust_env=False,
        verify=False,
    ) as client:
        yield client


def test_a_webhook_is_taken_on_its_own_port_only(
    bridge: BridgeProcess, hooks: httpx.Client
) -> None:
    body, headers = request(message("t1", "say hello"), "d1")

    elsewhere = bridge.http.post(PATH, content=body, headers=headers)
    there = hooks.post(PATH, content=body, headers=headers)

    assert (elsewhere.status_code, there.status_code) == (404, 200)
    assert "HOOKS_PORT" in elsewhere.json()["title"]
    assert bridge.rows("select count(*) from delivery") == [(1,)]


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/metrics", "/api/v1/agents", "/mcp", "/webhooks/hook/stranger"]
)
def test_the_port_of_webhooks_serves_nothing_else(
    bridge: BridgeProcess, hooks: httpx.Client, path: str
) -> None:
    assert hooks.get(path).status_code == 404
    assert hooks.post(path).status_code == 404
    assert "receives webhooks" in hooks.get(path).json()["title"]


def test_the_port_of_webhooks_opens_no_websocket(bridge: BridgeProcess, hooks_port: int) -> None:
    head = (
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    with socket.create_connection(("127.0.0.1", hooks_port), timeout=30) as connection:
        connection.sendall(head.encode())
        status = connection.recv(4096).split(b" ", 2)[1]

    assert status in (b"403", b"404")
