"""The example service as a package of its own, and what takes its callbacks."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from app.services import GROUP
from app.services.service import Service
from tests.support.platform import Server

EXAMPLE = Path(__file__).parents[2] / "examples" / "echo_service"
SECRET = "Uv3-echo-qX9-tests"
INSTALL_SECONDS = 300
"""A build on a busy machine."""
SECONDS = 60.0


def installed() -> Path:
    """Install the example service, as pip does it; once for all tests of a process."""
    return install(EXAMPLE)


@cache
def install(package: Path) -> Path:
    """Install a package into a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="agent-bridge-echo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-build-isolation", "--no-index", "--no-compile"]
    subprocess.run(
        [*pip, *alone, "--target", str(folder), str(package)],
        check=True,
        timeout=INSTALL_SECONDS,
    )
    return folder


@contextmanager
def loaded() -> Iterator[Service]:
    """Load the service that the installed package names, without leaving it on the path."""
    folder = str(installed())
    sys.path.insert(0, folder)
    try:
        (package,) = distributions(path=[folder])
        (point,) = package.entry_points.select(group=GROUP)
        yield point.load()
    finally:
        sys.path.remove(folder)


@dataclass
class Receiver:
    """A callback on loopback: keeps the latest of every post, as the documentation asks for."""

    posts: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        receiver = self
        self._changed = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/posts"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, headers: dict[str, str], body: bytes) -> None:
        """Keep a callback."""
        event = json.loads(body)
        with self._changed:
            self.headers.append(headers)
            self.bodies.append(body)
            if event["type"] == "post":
                self.posts[event["id"]] = event
            else:
                self.others.append(event)
            self._changed.notify_all()

    def wait(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a post."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(fits, self.posts.values())), SECONDS), (
                self.posts
            )
            return next(filter(fits, self.posts.values()))


def signed(
    headers_for: Callable[..., dict[str, str]], event: dict[str, Any], now: float
) -> dict[str, Any]:
    """Make the signed request of an event, as arguments for httpx."""
    body = json.dumps(event).encode()
    return {"content": body, "headers": headers_for(SECRET, uuid4().hex, body, now)}


def message(place: str, text: str) -> dict[str, Any]:
    """Say something as Ann."""
    return {"type": "message", "place": place, "id": uuid4().hex, "speaker": ANN, "text": text}


ANN = {"id": "ann", "name": "Ann"}
