"""A call to the simulated GitHub of somebody who was let in, and the paths that answer calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sim.github.answers import Reply, Request, invalid, not_found
from sim.github.records import Records
from sim.github.state import App, Issue, Repository, Token

BODY_CHARACTERS = 65_536
LEVELS = ("read", "write", "admin")


@dataclass
class Asked:
    """A call of somebody who was let in."""

    github: Records
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

    @property
    def of_repository(self) -> bool:
        """Whether its path names a repository."""
        return "owner" in self.pattern.groupindex


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
