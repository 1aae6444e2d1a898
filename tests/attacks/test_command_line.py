"""A program on the port that the settings name learns nothing from the command line."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.server.local_socket import SOCKET_NAME
from tests.support.nursery import nursery
from tests.support.served import Served

LONG = "a-folder-with-a-long-name" * 5
"""With it a path is longer than the address of a unix socket can be."""


@contextmanager
def eavesdropper() -> Iterator[tuple[int, list[str]]]:
    """Listen on a port and answer everything with 200; gives the port and what was heard."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.requestline}\n{self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok", "url": "http://evil.test/login/x"}')

        do_POST = do_GET  # noqa: N815 - the name that the server looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port, heard
        server.shutdown()


def run(bridge: Served, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command beside a bridge, with settings that may differ from those of the bridge."""
    environment = {**bridge.environment, **settings}
    return nursery().run(*command, environment=environment, cwd=bridge.home)


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("bridge")) as started:
        yield started


@pytest.mark.long
@pytest.mark.parametrize(
    "command", [("login",), ("agents", "list"), ("sessions", "list"), ("ask", "demo", "say hi")]
)
def test_the_admin_token_never_goes_to_the_port_of_the_settings(
    bridge: Served, command: tuple[str, ...]
) -> None:
    """Attack 8."""
    with eavesdropper() as (port, heard):
        done = run(bridge, *command, PORT=str(port))

    assert heard == []
    assert done.returncode == 0, done.stderr
    assert "evil" not in done.stdout


def test_login_prints_the_address_of_the_bridge_that_runs(bridge: Served) -> None:
    """Attack 8: not the address that the settings of the shell would give."""
    link = run(bridge, "login", PORT="1", BRIDGE_BASE_URL="https://evil.test").stdout

    assert f":{bridge.port}/login/" in link
    assert "evil" not in link


def test_only_the_owner_reaches_the_bridge_through_its_socket(bridge: Served) -> None:
    mode = (bridge.data_dir / SOCKET_NAME).stat().st_mode

    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)


@pytest.mark.slow
def test_a_bridge_in_a_folder_with_a_long_name_is_found_and_followed(tmp_path: Path) -> None:
    with Served(tmp_path / LONG / LONG) as bridge:
        said = run(bridge, "ask", "demo", "say found you")

    assert len(os.fsencode(bridge.data_dir)) > 200
    assert (said.returncode, "found you" in said.stdout) == (0, True), said.stderr


@pytest.mark.slow
def test_a_socket_that_a_dead_bridge_left_is_no_bridge_and_keeps_none_from_starting(
    bridge: Served,
) -> None:
    bridge.kill()
    assert (bridge.data_dir / SOCKET_NAME).exists()

    refused = run(bridge, "login")
    bridge.start()

    assert (refused.returncode, "no bridge is running" in refused.stderr) == (1, True)
    assert run(bridge, "login").returncode == 0
