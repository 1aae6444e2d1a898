"""What a call to the simulated GitHub is: what was asked, who asks, what is answered or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from app.sim.github.state import App, Issue, Repository, Token

if TYPE_CHECKING:
    from app.sim.github.world import SimulatedGithub

BODY_CHARACTERS = 65_536
LEVELS = ("read", "write", "admin")


@dataclass(frozen=True)
class Reply:
    """What GitHub answers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    """GitHub says no."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        self.reply = Reply(
            status,
            {"message": message, "documentation_url": "https://docs.github.example"},
            {name.replace("_", "-"): value for name, value in headers.items()},
        )
        super().__init__(message)


def not_found() -> Refused:
    """Say that there is no such thing; strangers are told the same."""
    return Refused(404, "Not Found")


def invalid(resource: str, field_name: str, message: str) -> Refused:
    """Say what is wrong with a field."""
    refused = Refused(422, "Validation Failed")
    error = {"resource": resource, "field": field_name, "code": "custom", "message": message}
    refused.reply.body["errors"] = [error]
    return refused


@dataclass(frozen=True)
class Request:
    """One call, as it came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    data: dict[str, Any]

    def parameter(self, name: str, usual: str = "") -> str:
        """Read a parameter of the query."""
        return parse_qs(self.query).get(name, [usual])[0]


@dataclass
class Asked:
    """A call of somebody who was let in."""

    github: SimulatedGithub
    request: Request
    parts: dict[str, str]
    app: App
    token: Token | None = None
    place: Repository | None = None

    @property
    def repository(self) -> Repository:
        """The repository that it is about."""
        assert self.place is not None, "its route names one"
        return self.place

    def part(self, name: str) -> str:
        """Read a part of the path."""
        return self.parts[name]

    def issue(self) -> Issue:
        """Find the issue that it is about."""
        number = self.part("number")
        found = self.repository.issues.get(int(number)) if number.isdigit() else None
        if found is None:
            raise not_found()
        return found

    def pull(self) -> Issue:
        """Find the pull request that it is about."""
        issue = self.issue()
        if issue.pull is None:
            raise not_found()
        return issue

    def words(self) -> str:
        """Read what shall be said, if GitHub takes as much."""
        body = self.request.data.get("body")
        if not isinstance(body, str) or not body.strip():
            raise invalid("IssueComment", "body", "body can't be blank")
        if len(body) > BODY_CHARACTERS:
            most = f"(maximum is {BODY_CHARACTERS} characters)"
            raise invalid("IssueComment", "body", f"body is too long {most}")
        return body

    def page(self, found: Sequence[Any]) -> Reply:
        """Show one page of a list, with a link to the next."""
        request = self.request
        size = min(100, int(request.parameter("per_page", "30")))
        page = int(request.parameter("page", "1"))
        headers = {}
        if page * size < len(found):
            kept = [part for part in request.query.split("&") if not part.startswith("page=")]
            query = "&".join([*kept, f"page={page + 1}"])
            where = f"{self.github.api_url}{request.path}?{query}"
            headers["link"] = f'<{where}>; rel="next"'
        return Reply(200, list(found[(page - 1) * size : page * size]), headers)


Handler = Callable[[Asked], Reply]


@dataclass(frozen=True)
class Route:
    """One path, and what it takes to use it."""

    method: str
    pattern: re.Pattern[str]
    handler: Handler
    needs: tuple[str, str] | None
    """A permission of a token, one of several; None: the App itself calls."""


class Routes:
    """The paths of one part of the API."""

    def __init__(self) -> None:
        self.all: list[Route] = []

    def on(self, method: str, path: str, *needs: str) -> Callable[[Handler], Handler]:
        """Say which path a function answers."""
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

        def keep(handler: Handler) -> Handler:
            needed = (needs[0], needs[1]) if needs else None
            self.all.append(Route(method, pattern, handler, needed))
            return handler

        return keep
