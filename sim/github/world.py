"""A GitHub on loopback: people, Apps, issues, pull requests, git, and all that GitHub refuses.

It is a witness, not a mirror: it knows nothing of the bridge, keeps a transcript of every call, and
tells Apps what happens by signed webhooks, each once.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from sim.github.answers import Reply, Request
from sim.github.checks import LOGS
from sim.github.git import Answer
from sim.github.people import People
from sim.github.rest import Rest
from sim.github.server import Server, handler
from sim.github.state import Account, Token

API = "/api/v3"
"""Where the API lies, as on Enterprise: below a path."""
_GIT = re.compile(
    r"/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?(?P<rest>/(?:info/refs|git-upload-pack|git-receive-pack))"
)


@dataclass(frozen=True)
class Call:
    """One line of the transcript."""

    app: str
    method: str
    path: str
    status: int
    data: dict[str, Any]


@dataclass
class Fault:
    """What happens to the next calls of a kind, in place of what they ask for."""

    method: str
    pattern: re.Pattern[str]
    reply: Reply | None
    """None: it is carried out, and the answer is lost."""
    times: int


class SimulatedGithub(People):
    """The whole of it; used as a context manager."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        super().__init__(folder, now)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self._rest = Rest(self)
        self._server = Server(("127.0.0.1", 0), handler(self.serve_git, self.answer, now))
        # Looks often whether it is to end: tests begin and end many.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        """Where it listens, for git and for people."""
        self.api_url = self.url + API
        self.assets.url = self.url

    def __enter__(self) -> Self:
        self._thread.start()
        self.hooks.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hooks.close()
        self._server.shutdown()
        self._server.server_close()

    # What tests do.

    def wait(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something is true."""
        with self.changed:
            if not self.changed.wait_for(done, seconds):
                raise TimeoutError(f"the simulated GitHub still shows:\n{self.shown()}")

    def quiet(self, seconds: float = 30.0) -> None:
        """Wait until every webhook has been sent."""
        self.wait(lambda: self.hooks.unsent == 0, seconds)

    def fail(
        self, method: str, pattern: str, reply: Reply | None = None, *, times: int = 1
    ) -> None:
        """Answer the next calls of a kind otherwise; None loses the answer."""
        self.faults.append(Fault(method, re.compile(pattern), reply, times))

    def shown(self) -> str:
        """Write down everything that people see."""
        lines = []
        for repository in self.repositories.values():
            for issue in repository.issues.values():
                lines.append(f"{repository.full_name}#{issue.number} {issue.title}")
                said = [*issue.comments, *(issue.pull.comments if issue.pull else ())]
                lines += [f"  {each.user.login} ({each.id}): {each.body}" for each in said]
        lines += [
            f"{each.app} {each.method} {each.path} {each.status}" for each in self.calls[-20:]
        ]
        return "\n".join(lines)

    # The server.

    def answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> Reply | None:
        """Answer one call to the API; None loses the answer."""
        parts = urlsplit(target)
        path = parts.path.removeprefix(API)
        if path.startswith(LOGS):
            return self._log(path.removeprefix(LOGS))
        data = json.loads(body) if body else {}
        request = Request(method, path, parts.query, headers, data)
        with self.changed:
            fault = next(
                (f for f in self.faults if f.method == method and f.pattern.search(path)), None
            )
            if fault is not None:
                fault.times -= 1
                if not fault.times:
                    self.faults.remove(fault)
            lost = fault is not None and fault.reply is None
            reply = fault.reply if fault is not None else None
            reply = reply or self._rest.answer(request)
            self.calls.append(Call(self._who(headers), method, path, reply.status, data))
            self.changed.notify_all()
        return None if lost else reply

    def _log(self, run: str) -> Reply:
        runs = (each for home in self.repositories.values() for each in home.checks)
        found = next((each for each in runs if str(each.id) == run), None)
        written = "" if found is None else found.log
        return Reply(200, written, {"content-type": "text/plain"})

    def serve_git(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> Answer | None:
        """Answer a git client, if its token reaches the repository; None if it is no git call.

        What people dropped into texts lies beside the repositories.
        """
        if (file := self.assets.serve(method, target, headers)) is not None:
            return file
        parts = urlsplit(target)
        found = _GIT.fullmatch(parts.path)
        if found is None:
            return None
        writing = "receive-pack" in parts.path + parts.query
        refusal = self._git_refusal(found["name"], headers, writing=writing)
        self.calls.append(
            Call("git", method, parts.path, refusal.status if refusal else 200, {"write": writing})
        )
        if refusal is not None:
            return refusal
        repository = self.repositories[found["name"].lower()]
        before = self.git.branches(repository.full_name)
        path = f"/{repository.full_name}.git{found['rest']}"
        token = self._token(headers)
        may_change_workflows = token is not None and token.permissions.get("workflows") == "write"
        answer = self.git.serve(
            method,
            path,
            parts.query,
            headers,
            body,
            protected=repository.protected,
            signed=repository.signed,
            may_change_workflows=may_change_workflows,
        )
        self.pushed(repository, before, self._pusher(headers))
        return answer

    def _git_refusal(self, name: str, headers: dict[str, str], *, writing: bool) -> Answer | None:
        repository = self.repositories.get(name.lower())
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            if repository is not None and not repository.private and not writing:
                return None
            return Answer(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"")
        user, _, value = base64.b64decode(given).decode().partition(":")
        token = self.tokens.get(value)
        if user != "x-access-token" or token is None or token.until <= self.now():
            return Answer(401, {"WWW-Authenticate": 'Basic realm="GitHub"'}, b"")
        if repository is None or repository.id not in token.repositories:
            return Answer(404, {}, b"Repository not found.")
        held = token.permissions.get("contents")
        if held not in ({"write"} if writing else {"read", "write"}):
            return Answer(403, {}, b"Write access to repository not granted.")
        return None

    def _token(self, headers: dict[str, str]) -> Token | None:
        """Find the token of a git client."""
        given = headers.get("authorization", "").partition(" ")[2]
        return self.tokens.get(base64.b64decode(given).decode().partition(":")[2])

    def _pusher(self, headers: dict[str, str]) -> Account:
        token = self._token(headers)
        return token.installation.app.bot if token else self.account("somebody")

    def _who(self, headers: dict[str, str]) -> str:
        given = headers.get("authorization", "").partition(" ")[2]
        token = self.tokens.get(given)
        return token.installation.app.slug if token else ("app" if given else "")
