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
from urllib.parse import parse_qs, urlsplit

from sim.linear.graphql import GraphqlInvalid, execute, read_operation
from sim.linear.hooks import HookDelivery, Hooks
from sim.linear.oauth import Oauth
from sim.linear.people import People
from sim.linear.records import App
from sim.linear.rules import LinearRefusal
from sim.linear.schema import SCHEMA
from sim.linear.uploads import Uploads
from sim.linear.views import Views
from sim.linear.workspace import Workspace

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

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that are gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Linear(People):
    """One workspace, its API and its people."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.behind = 0.0
        """How many seconds its clock is behind that of the machine: time that can still pass."""

        def now() -> float:
            return clock() - self.behind

        workspace = Workspace(now)
        self.kept = Uploads(workspace.id, lambda: self.url.removesuffix("/graphql"))
        self.uploads = self.kept.files
        """All files, by their path."""
        views = Views(workspace, self.kept)
        super().__init__(workspace, views, Hooks(now))
        self.views = views
        self.oauth = Oauth(workspace)
        self.calls: list[Call] = []
        self.limited_until: float | None = None
        """Until when every call is answered with the rate limit."""
        self.down = False
        """Whether every call is answered with 503."""
        self.forbidden: set[str] = set()
        """Fields that no app may ask for."""
        self.held: set[str] = set()
        """Fields that are not answered until they are taken out of here."""
        self.waiting: list[str] = []
        """The fields that somebody waits for."""
        self.undone = 0
        """How many mutations are not carried out and answered with `success: false`."""
        self.lose_answers = 0
        """How many mutations are carried out without an answer."""
        self.lose_uploads = 0
        """How many files are neither taken nor answered."""
        self.lose_tokens = 0
        """How many tokens are given without an answer."""
        self._server = _Server(self)
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

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and send again what is due meanwhile."""
        until = self.workspace.now() + seconds
        while (next_one := self.hooks.next_due()) and (due := next_one.due or 0.0) <= until:
            self.behind -= max(due - self.workspace.now(), 0.0)
            self.hooks.repeat(next_one)
        self.behind -= max(until - self.workspace.now(), 0.0)

    def upload(self, name: str, content: bytes) -> str:
        """Keep a file; returns how it stands in a text."""
        return self.kept.keep(name, content)

    def revoke(self, app: App) -> None:
        """Take an app out of the workspace, and tell it."""
        with self.changed:
            self.oauth.revoke(app)
        self.hooks.send(app, self.views.revoked(app))

    def let_in(self, app: App) -> HookDelivery:
        """Let an app into the team, and tell it."""
        return self.hooks.send(app, self.views.access_changed(app))

    def tell_opened(self) -> None:
        """Tell apps of the sessions that they opened, even before they know themselves."""
        with self.changed:
            opened, self.workspace.opened = self.workspace.opened, []
        for session in opened:
            self.hooks.send(session.app, self.views.session_event(session, "created"))

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
            operation = read_operation(SCHEMA, str(request.get("query", "")))
            if not self.forbidden.isdisjoint(operation.fields):
                return 200, {"data": None, **_errors("Not allowed", "FORBIDDEN")}, {}
            if operation.writes and "write" not in app.scope.split(","):
                words = "Invalid scope: `write` required"
                return 200, {"data": None, **_errors(words, "FORBIDDEN")}, {}
            if operation.writes and self.undone > 0:
                self.undone -= 1
                return 200, {"data": {operation.fields[0]: {"success": False}}}, {}
            root = self.views.root(app)
            return 200, {"data": execute(SCHEMA, operation, variables, root)}, {}
        except GraphqlInvalid as error:
            return 400, _errors(str(error), "GRAPHQL_VALIDATION_FAILED"), {}
        except LinearRefusal as error:
            return 200, {"data": None, **_errors(str(error), error.code)}, {}

    def owner(self, authorization: str) -> App | None:
        """Tell whose token this is."""
        token = authorization.removeprefix("Bearer ")
        now = self.workspace.now()
        apps = self.workspace.apps.values()
        return next((app for app in apps if app.tokens.get(token, 0.0) > now), None)

    def take(self, path: str, authorization: str, body: bytes) -> tuple[Answer, bool]:
        """Carry out one request; says also whether its answer is to be lost."""
        with self.changed:
            if path == "/oauth/token":
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                self._hold("token")
                given: Answer = (503, {}, {}) if self.down else (*self.oauth.give(form), {})
                self._note("-", "token", {"grant": form.get("grant_type")}, given)
                lost = self.lose_tokens > 0
                self.lose_tokens -= lost
                return given, lost
            app = self.owner(authorization)
            if app is None:
                return (401, _errors("Not authenticated", "AUTHENTICATION_ERROR"), {}), False
            request = json.loads(body)
            try:
                operation = read_operation(SCHEMA, str(request.get("query", "")))
                name, writes = operation.fields[0], operation.writes
            except GraphqlInvalid:
                name, writes = "unreadable", False
            self._hold(name)
            answer = self.answer(app, request)
            self._note(app.user.name, name, dict(request.get("variables") or {}), answer)
            lost = writes and answer[0] == 200 and self.lose_answers > 0
            self.lose_answers -= lost
            return answer, lost

    def _hold(self, field: str) -> None:
        """Let a call wait for as long as its field is held back; others are answered meanwhile."""
        if field in self.held:
            self.waiting.append(field)
            self.changed.notify_all()
            self.changed.wait_for(lambda: field not in self.held, WAIT_SECONDS)
            self.waiting.remove(field)

    def release(self, field: str) -> None:
        """Answer the calls that were held back."""
        with self.changed:
            self.held.discard(field)
            self.changed.notify_all()

    def _note(self, app: str, field: str, variables: dict[str, Any], answer: Answer) -> None:
        self.calls.append(Call(app, field, variables, answer[0], self.workspace.now()))
        self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP for the simulated Linear that its server belongs to."""

    server: _Server
    protocol_version = "HTTP/1.1"

    @property
    def linear(self) -> Linear:
        """Whom to ask."""
        return self.server.linear

    def do_GET(self) -> None:
        """Let an admin consent, or give a file to whoever has a token."""
        address = urlsplit(self.path)
        if address.path == "/oauth/authorize":
            self._consent({name: v[0] for name, v in parse_qs(address.query).items()})
            return
        owner = self.linear.owner(self.headers.get("authorization", ""))
        content = self.linear.uploads.get(self.path.removeprefix("/uploads/"))
        status = 401 if owner is None else 404 if content is None else 200
        given = b"" if owner is None or content is None else content
        self.send_response(status)
        self.send_header("content-length", str(len(given)))
        self.end_headers()
        self.wfile.write(given)

    def _consent(self, asked: dict[str, str]) -> None:
        try:
            with self.linear.changed:
                where = self.linear.oauth.consent(asked)
        except LinearRefusal as error:
            self.send_error(400, str(error))
            return
        self.send_response(302)
        self.send_header("location", where)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_PUT(self) -> None:
        """Take a file to whoever was told where to send it."""
        body = self.rfile.read(int(self.headers["content-length"]))
        number = self.path.removeprefix("/upload/")
        with self.linear.changed:
            if self.linear.lose_uploads > 0:
                self.linear.lose_uploads -= 1
                self.close_connection = True
                return
            status = self.linear.kept.take(number, dict(self.headers), body)
            self.linear.changed.notify_all()
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
        (status, answer, headers), lost = self.linear.take(self.path, authorization, body)
        self.linear.tell_opened()
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


def _errors(message: str, code: str) -> dict[str, Any]:
    extensions = {"code": code, "userPresentableMessage": message}
    return {"errors": [{"message": message, "extensions": extensions}]}
