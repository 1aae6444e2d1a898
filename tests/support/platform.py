"""A platform on loopback that outlives any bridge: it takes posts, finds them again, and remembers.

It refuses what a real one refuses: edits of messages that do not exist, callers without its token.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

FINAL = {"done", "failed", "stopped"}


@dataclass
class RemotePost:
    """One message as people see it."""

    id: str
    target: str
    marker: str
    content: dict[str, Any]
    edits: int = 0
    finished: int = 0
    """How often it was told its last content."""
    reopened: int = 0
    """How often something else was shown after that."""

    @property
    def state(self) -> str:
        """What it says of its turn or ask."""
        return str(self.content["state"])

    @property
    def text(self) -> str:
        """The agent's words."""
        return str(self.content["text"])

    @property
    def note(self) -> str:
        """The bridge's own words."""
        return str(self.content["note"])

    def show(self, call: dict[str, Any]) -> None:
        """Take what a call says."""
        self.content = call["content"]
        final = call["op"] == "finish" or self.state in FINAL
        self.reopened += self.finished > 0 and not final
        self.finished += final


class Server(ThreadingHTTPServer):
    """A server whose callers may die in the middle of a call."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that are gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@dataclass
class Platform:
    """All that was posted, in order."""

    token: str = "platform-token-of-the-tests"
    posts: list[RemotePost] = field(default_factory=list)
    whispers: list[tuple[str, str]] = field(default_factory=list)
    """What only one person was told: who, and the words."""
    failures: list[int] = field(default_factory=list)
    """Statuses to answer with before anything works again."""
    lose_answers: int = 0
    """How many calls are carried out without an answer."""

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        platform = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                marker = parse_qs(urlsplit(self.path).query)["marker"][0]
                found = next((p for p in platform.posts if p.marker == marker), None)
                self.reply(200, {"id": found.id if found else None})

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the bridge died while it sent this
                    self.close_connection = True
                    return
                call = json.loads(body)
                if self.headers.get("authorization") != f"Bearer {platform.token}":
                    self.reply(401, {})
                    return
                with platform.changed:
                    status, answer = platform.take(call)
                    lost = platform.lose_answers > 0 and status == 200
                    platform.lose_answers -= lost
                    platform.changed.notify_all()
                if lost:
                    self.close_connection = True
                else:
                    self.reply(status, answer)

            def reply(self, status: int, answer: dict[str, Any]) -> None:
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        # Looks often whether it is to end: tests begin and end many.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, call: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Carry out one call."""
        if self.failures:
            return self.failures.pop(0), {}
        if call["op"] == "whisper":
            self.whispers.append((call["to"], call["words"]))
            return 200, {}
        if call["op"] == "create":
            number = str(len(self.posts) + 1)
            post = RemotePost(number, call["target"], call["marker"], call["content"])
            self.posts.append(post)
        else:
            found = [post for post in self.posts if post.id == call["remote_id"]]
            if not found:
                return 404, {}
            post = found[0]
            post.edits += 1
        post.show(call)
        return 200, {"id": post.id}

    def wait(self, done: Callable[[list[RemotePost]], bool], seconds: float = 30.0) -> None:
        """Wait until something is true of the posts."""
        with self.changed:
            if not self.changed.wait_for(lambda: done(self.posts), seconds):
                shown = "\n".join(f"{p.target} {p.content}" for p in self.posts)
                raise TimeoutError(f"the platform still shows:\n{shown}")

    def turns(self, place: str | None = None) -> list[RemotePost]:
        """List the posts that show turns."""
        return self.shown("turn", place)

    def shown(self, kind: str, place: str | None = None) -> list[RemotePost]:
        """List the posts of one kind (turn, ask, notice), in one place or in all."""
        return [
            post
            for post in self.posts
            if post.content["kind"] == kind
            and (place is None or post.target.startswith(f"web:{place}:"))
        ]
