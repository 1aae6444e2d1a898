"""The HTTP side of the simulated GitHub: takes calls, hands them on, writes the answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sim.github.answers import Reply
from sim.github.git import Answer

Api = Callable[[str, str, dict[str, str], bytes], Reply | None]
Git = Callable[[str, str, dict[str, str], bytes], Answer | None]


class Server(ThreadingHTTPServer):
    """A server whose callers may die in the middle of a call."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that are gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def handler(git: Git, api: Api, now: Callable[[], float]) -> type[BaseHTTPRequestHandler]:
    """Make what serves one connection: git clients first, everybody else after them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self._body(headers)
            answer = git(self.command, self.path, headers, body)
            if answer is not None:
                self._send(answer.status, answer.headers, answer.body)
                return
            reply = api(self.command, self.path, headers, body)
            if reply is None:
                self.close_connection = True
                return
            limits = {
                "content-type": "application/json; charset=utf-8",
                "x-ratelimit-limit": "5000",
                "x-ratelimit-remaining": "4999",
                "x-ratelimit-reset": str(int(now()) + 3600),
            }
            is_text = isinstance(reply.body, str)
            written = reply.body if is_text else json.dumps(reply.body)
            payload = b"" if reply.body is None else written.encode()
            self._send(reply.status, limits | reply.headers, payload)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - the server's names

        def _body(self, headers: dict[str, str]) -> bytes:
            if headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(headers.get("content-length") or 0))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's name
            pass

    return Handler
