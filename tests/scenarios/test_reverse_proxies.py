"""The examples for nginx and Caddy, as real programs in front of a real bridge."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import ADMIN_TOKEN, BridgeProcess
from tests.support.certificates import certified
from tests.support.hook import message, request
from tests.support.platform import Platform

pytestmark = [
    pytest.mark.timeout(180),  # a proxy, a bridge, and TLS of 24 MB
    pytest.mark.one_database,
]

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "localhost"
SECONDS = 30.0
LARGE = 24 * 1024 * 1024
"""Below the largest webhook, and far above what proxies take by default."""


@dataclass
class Front:
    """A bridge behind a proxy, and a client that comes through it."""

    bridge: BridgeProcess
    http: httpx.Client

    def post(self, text: str, delivery: str, *mentions: str) -> httpx.Response:
        """Send a webhook, about a new place."""
        body, headers = request(message(delivery, text, *mentions), delivery)
        return self.http.post("/webhooks/hook/demo", content=body, headers=headers)


@dataclass
class Ports:
    """Free ports, held for programs that are to listen on them."""

    held: list[socket.socket] = field(default_factory=list)

    def take(self) -> int:
        """Hold one more."""
        reserved = socket.socket()
        reserved.bind(("127.0.0.1", 0))
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.held.append(reserved)
        port: int = reserved.getsockname()[1]
        return port

    def release(self, port: int) -> None:
        """Let a program have one that sets no SO_REUSEADDR in time."""
        for each in self.held:
            if each.fileno() >= 0 and each.getsockname()[1] == port:
                each.close()

    def close(self) -> None:
        """Release all."""
        for each in self.held:
            each.close()


def nginx(folder: Path, port: int, main: int, hooks: int) -> list[str]:
    """Write the example for this machine; returns the command that runs it."""
    site = (DEPLOY / "nginx.conf").read_text()
    site = site.replace("443 ssl", f"127.0.0.1:{port} ssl").replace("bridge.example.com", HOST)
    for name in ("fullchain.pem", "privkey.pem"):
        site = site.replace(f"/etc/letsencrypt/live/{HOST}/{name}", str(folder / "server.pem"))
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "whole.conf").write_text(
        # Its workers must get at the folder of the test.
        f"{'user root;' * (os.geteuid() == 0)} daemon off; pid {folder}/pid; error_log stderr;\n"
        "events {}\n"
        f"http {{ access_log off;\n{temporary}\n{_with_ports(site, main, hooks)} }}\n"
    )
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "whole.conf")]


def caddy(folder: Path, port: int, main: int, hooks: int) -> list[str]:
    """Write the example for this machine; returns the command that runs it."""
    site = (DEPLOY / "Caddyfile").read_text()
    certificate = folder / "server.pem"
    site = site.replace(
        "bridge.example.com {", f"https://{HOST}:{port} {{\n\ttls {certificate} {certificate}"
    )
    (folder / "Caddyfile").write_text(
        "{\n\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s\n}\n"
        + _with_ports(site, main, hooks)
    )
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def _with_ports(site: str, main: int, hooks: int) -> str:
    return site.replace("127.0.0.1:8000", f"127.0.0.1:{main}").replace(
        "127.0.0.1:8001", f"127.0.0.1:{hooks}"
    )


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """Run a proxy until the test ends."""
    surroundings = {"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(command, env=surroundings, stdout=log, stderr=log)
    try:
        until = time.monotonic() + SECONDS
        while not _listens(port):
            assert process.poll() is None, (folder / "proxy.log").read_text()
            assert time.monotonic() < until, (folder / "proxy.log").read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), SECONDS).close()
    except ConnectionError:
        return False
    return True


def needs(program: str) -> pytest.MarkDecorator:
    """Skip where a program is missing."""
    found = shutil.which(program, path="/usr/sbin:/usr/bin:/bin")
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(nginx, marks=needs("nginx"), id="nginx"),
        pytest.param(caddy, marks=needs("caddy"), id="caddy"),
    ],
)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    write: Callable[[Path, int, int, int], list[str]] = request.param
    folder = tmp_path_factory.mktemp("front")
    _, trusted = certified(folder, HOST)
    ports = Ports()
    with ExitStack() as stack:
        stack.callback(ports.close)
        port, hooks = ports.take(), ports.take()
        settings = {"HOOKS_PORT": str(hooks), "BRIDGE_BASE_URL": f"https://{HOST}:{port}"}
        platform = stack.enter_context(Platform())
        bridge = BridgeProcess(folder, platform, settings=settings)
        stack.enter_context(bridge)
        command = write(folder, port, bridge.port, hooks)
        ports.release(port)
        stack.enter_context(running(command, port, folder))
        http = httpx.Client(
            base_url=f"https://{HOST}:{port}",
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            verify=ssl.create_default_context(cafile=trusted),
            trust_env=False,
            timeout=SECONDS,
        )
        yield Front(bridge, stack.enter_context(http))


def test_webhooks_get_to_their_port_and_all_else_to_the_page(front: Front) -> None:
    assert front.post("say one", "d1").status_code == 200
    assert front.http.get("/healthz").status_code == 200
    assert front.http.get("/webhooks/hook/stranger").status_code == 404
    assert front.http.get("/api/v1/agents").status_code == 200


@pytest.mark.long
def test_the_largest_webhooks_pass(front: Front) -> None:
    answer = front.post("x" * LARGE, "d2")

    assert answer.status_code == 200


@pytest.mark.long
def test_events_arrive_while_the_stream_is_open(front: Front) -> None:
    front.post("say one\nhold gate\nsay two", "d3", "demo")
    front.bridge.wait(lambda: front.bridge.rows("select 1 from session") != [], "no session")

    with front.http.stream("GET", "/api/v1/sessions/1/events") as stream:
        lines = stream.iter_lines()
        wait_for('"one', lines)
        (front.bridge.workspace() / "gate").touch()
        wait_for("two", lines)


def wait_for(words: str, lines: Iterator[str]) -> None:
    """Read lines until one has the words; the client's own limit ends it."""
    while words not in next(lines):
        pass
