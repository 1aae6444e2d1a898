"""A model API on loopback that answers by script and keeps a transcript of what it was asked."""

from __future__ import annotations

import json
import select
import ssl
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.agents.dialects import CHAT, GEMINI, MESSAGES, RESPONSES, Dialect, Event
from tests.agents.script import Question, Words, reply

LOOK_SECONDS = 0.05
"""How often an endless answer looks whether anybody still listens."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came."""

    path: str
    question: Question
    body: dict[str, Any] = field(repr=False)


class Model:
    """The scripted model; a context manager that serves while it is open."""

    def __init__(self, host: str = "", tls: ssl.SSLContext | None = None) -> None:
        """Listen on loopback; with TLS it is known by a host name instead."""
        self._host = host
        self.asked: list[Asked] = []
        self.strange: list[str] = []
        """Paths that no agent is known to ask for."""
        self.cut = threading.Event()
        """Set when an agent has hung up in the middle of an endless answer."""
        self.closing = threading.Event()
        self._server = _Server(self)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(LOOK_SECONDS,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        if self._host:
            return f"https://{self._host}"
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def port(self) -> int:
        """The port on loopback."""
        return self._server.server_port

    def heard(self, words: str) -> bool:
        """Whether a user's words ever reached it."""
        return any(words in said for asked in self.asked for said in asked.question.told)


class _Handler(BaseHTTPRequestHandler):
    """Reads one question after another and answers each in its dialect."""

    protocol_version = "HTTP/1.1"

    @property
    def _model(self) -> Model:
        assert isinstance(self.server, _Server)
        return self.server.model

    def log_message(self, *_: object) -> None:
        """Keep quiet: the transcript tells it all."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/models"):
            self._json({"object": "list", "data": [], "models": [], "has_more": False})
        else:
            self._unknown(path)

    def do_HEAD(self) -> None:
        self._json({})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        dialect = _dialect(path)
        if dialect is not None:
            self._answer(path, dialect, json.loads(data))
        elif path.endswith(("count_tokens", ":countTokens")):
            self._json({"input_tokens": 10, "totalTokens": 10})
        else:
            self._unknown(path)

    def _answer(self, path: str, dialect: Dialect, body: dict[str, Any]) -> None:
        question = dialect.read(body)
        if dialect is GEMINI:
            question = replace(question, stream=path.endswith(":streamGenerateContent"))
        self._model.asked.append(Asked(path, question, body))
        answer = reply(question)
        if not question.stream:
            self._json(dialect.whole(answer))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self._send(dialect.begin(answer))
        for piece in answer.pieces if isinstance(answer, Words) else ():
            self._send(dialect.piece(answer, piece))
        if isinstance(answer, Words) and answer.endless:
            self._hold()
            return
        self._send(dialect.end(answer))

    def _hold(self) -> None:
        """Say nothing more, until the agent hangs up."""
        while not self._model.closing.is_set():
            if select.select([self.connection], [], [], LOOK_SECONDS)[0]:
                self._model.cut.set()
                return

    def _send(self, events: Iterable[Event]) -> None:
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            named = f"event: {name}\n" if name else ""
            self.wfile.write(f"{named}data: {text}\n\n".encode())
            self.wfile.flush()

    def _json(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _unknown(self, path: str) -> None:
        self._model.strange.append(f"{self.command} {path}")
        self._json({"error": {"type": "not_found_error", "message": "no such path"}}, 404)

    def handle(self) -> None:
        """Serve; an agent that hangs up or is killed is no error here."""
        try:
            super().handle()
        except ConnectionError:
            self._model.cut.set()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model


def _dialect(path: str) -> Dialect | None:
    endings = {
        "/messages": MESSAGES,
        "/responses": RESPONSES,
        "/chat/completions": CHAT,
        ":streamGenerateContent": GEMINI,
        ":generateContent": GEMINI,
    }
    return next((dialect for end, dialect in endings.items() if path.endswith(end)), None)
