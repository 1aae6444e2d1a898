"""The simulated Linear on loopback: GraphQL and tokens over HTTP, and people who use it.

It outlives any bridge, keeps a transcript of every call, and fails when it is told to.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs

from app.sim.linear.graphql import Execution, GraphqlInvalid, read_operation
from app.sim.linear.hooks import Hooks
from app.sim.linear.people import People
from app.sim.linear.schema import SCHEMA
from app.sim.linear.uploads import Uploads
from app.sim.linear.views import Views
from app.sim.linear.workspace import App, LinearRefusal, Workspace, new_id

TOKEN_SECONDS: Final = 30 * 24 * 3600
"""How long a token lives that an app got for its own credentials."""
WAIT_SECONDS: Final = 30.0
"""How long a test waits for something to be true: long, since machines may be busy."""

Answer = tuple[int, dict[str, Any], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and how it was answered."""

    app: str
    field: str
    variables: dict[str, Any]
    status: int
    at: float


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that are gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Linear(People):
    """One workspace, its API and its people."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        workspace = Workspace(now)
        self._kept = Uploads(workspace.id, lambda: self.url.removesuffix("/graphql"))
        self.uploads = self._kept.files
        """All files, by their path."""
        views = Views(workspace, self._kept)
        super().__init__(workspace, views, Hooks(now))
        self.views = views
        self.calls: list[Call] = []
        self.limited_until: float | None = None
        """Until when every call is answered with the rate limit."""
        self.down = False
        """Whether every call is answered with 503."""
        self.forbidden: set[str] = set()
        """Fields that no app may ask for."""
        self.lose_answers = 0
        """How many mutations are carried out without an answer."""
        self._server = _Server(("127.0.0.1", 0), self._handler())
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
        self.hooks.close()

    @property
    def url(self) -> str:
        """Where its GraphQL API is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/graphql"

    def wait(self, done: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
        """Wait until something is true.

        Raises:
            TimeoutError: it never is.
        """
        with self.changed:
            if not self.changed.wait_for(done, seconds):
                shown = "\n".join(
                    f"{session.id} {session.status} {[a.content for a in session.activities]}"
                    for session in self.workspace.sessions.values()
                )
                raise TimeoutError(f"Linear still shows:\n{shown}")

    def upload(self, name: str, content: bytes) -> str:
        """Keep a file; returns how it stands in a text."""
        return self._kept.keep(name, content)

    def fields(self) -> list[str]:
        """List what was asked for or done, in order."""
        return [call.field for call in self.calls]

    def answer(self, app: App, request: dict[str, Any]) -> Answer:
        """Answer one GraphQL request of an app."""
        variables = dict(request.get("variables") or {})
        if self.down:
            return 503, {}, {}
        now = self.workspace.now()
        if self.limited_until is not None and now < self.limited_until:
            reset = str(int(self.limited_until * 1000))
            headers = {"X-RateLimit-Requests-Remaining": "0", "X-RateLimit-Requests-Reset": reset}
            return 400, _errors("Rate limit exceeded", "RATELIMITED"), headers
        try:
            execution = Execution(SCHEMA, str(request.get("query", "")), variables)
            if not self.forbidden.isdisjoint(execution.fields):
                return 200, {"data": None, **_errors("Not allowed", "FORBIDDEN")}, {}
            return 200, {"data": execution.answer(self.views.root(app))}, {}
        except GraphqlInvalid as error:
            return 400, _errors(str(error), "GRAPHQL_VALIDATION_FAILED"), {}
        except LinearRefusal as error:
            return 200, {"data": None, **_errors(str(error), error.code)}, {}

    def mint(self, form: dict[str, str]) -> Answer:
        """Give an app a token for its own credentials; it revokes none that has the same scope."""
        apps = {app.client_id: app for app in self.workspace.apps.values()}
        app = apps.get(form.get("client_id", ""))
        if form.get("grant_type") != "client_credentials" or app is None:
            return 400, {"error": "invalid_client"}, {}
        if form.get("client_secret") != app.client_secret:
            return 401, {"error": "invalid_client"}, {}
        if form.get("scope") != app.scope:
            return 400, {"error": "invalid_scope"}, {}
        token = f"lin_oauth_{new_id()}"
        app.tokens[token] = self.workspace.now() + TOKEN_SECONDS
        answer = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS - 1,
            "scope": app.scope,
        }
        return 200, answer, {}

    def owner(self, authorization: str) -> App | None:
        """Tell whose token this is."""
        token = authorization.removeprefix("Bearer ")
        now = self.workspace.now()
        apps = self.workspace.apps.values()
        return next((app for app in apps if app.tokens.get(token, 0.0) > now), None)

    def _take(self, path: str, authorization: str, body: bytes) -> tuple[Answer, bool]:
        """Carry out one request; says also whether its answer is to be lost."""
        with self.changed:
            if path == "/oauth/token":
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                answer = self.mint(form)
                self._note("-", "token", {}, answer)
                return answer, False
            app = self.owner(authorization)
            if app is None:
                return (401, _errors("Not authenticated", "AUTHENTICATION_ERROR"), {}), False
            request = json.loads(body)
            answer = self.answer(app, request)
            try:
                operation = read_operation(str(request.get("query", "")))
                name, kind = operation.selections[0].name, operation.kind
            except GraphqlInvalid:
                name, kind = "unreadable", ""
            self._note(app.user.name, name, dict(request.get("variables") or {}), answer)
            lost = kind == "mutation" and answer[0] == 200 and self.lose_answers > 0
            self.lose_answers -= lost
            return answer, lost

    def _note(self, app: str, field: str, variables: dict[str, Any], answer: Answer) -> None:
        self.calls.append(Call(app, field, variables, answer[0], self.workspace.now()))
        self.changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        linear = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """Give a file to whoever has a token."""
                owner = linear.owner(self.headers.get("authorization", ""))
                content = linear.uploads.get(self.path.removeprefix("/uploads/"))
                status = 401 if owner is None else 404 if content is None else 200
                given = b"" if owner is None or content is None else content
                self.send_response(status)
                self.send_header("content-length", str(len(given)))
                self.end_headers()
                self.wfile.write(given)

            def do_PUT(self) -> None:
                """Take a file to whoever was told where to send it."""
                body = self.rfile.read(int(self.headers["content-length"]))
                number = self.path.removeprefix("/upload/")
                with linear.changed:
                    status = linear._kept.take(number, dict(self.headers), body)
                    linear.changed.notify_all()
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the caller died while it sent this
                    self.close_connection = True
                    return
                authorization = self.headers.get("authorization", "")
                (status, answer, headers), lost = linear._take(self.path, authorization, body)
                if lost:
                    self.close_connection = True
                    return
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                """Say nothing: the transcript has it."""

        return Handler


def _errors(message: str, code: str) -> dict[str, Any]:
    extensions = {"code": code, "userPresentableMessage": message}
    return {"errors": [{"message": message, "extensions": extensions}]}
