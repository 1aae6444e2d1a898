"""The REST API of the simulated GitHub: who is let in, how often, and to which part."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from functools import partial
from urllib.parse import unquote

import jwt

from sim.github import apps, checks, graph, issues, pulls
from sim.github.answers import Refused, Reply, Request, not_found
from sim.github.apps import is_granted
from sim.github.calls import Asked, Route
from sim.github.records import Records
from sim.github.state import App, Installation, Repository, Token

WRITES_A_MINUTE = 80
WRITES_AN_HOUR = 500
JWT_SECONDS = 600
GRAPHQL = "/api/graphql"
"""Where GraphQL is on Enterprise: next to the REST API, not below it."""

_APP_PAGE = re.compile(r"/apps/(?P<slug>[\w-]+)")
_CONVERSION = re.compile(r"/app-manifests/(?P<code>\w+)/conversions")
ROUTES = [*apps.routes.all, *issues.routes.all, *pulls.routes.all, *checks.routes.all]


class Rest:
    """Answers calls, for the App or for one of its installations."""

    def __init__(self, github: Records) -> None:
        self._github = github
        self._writes: dict[int, deque[float]] = defaultdict(deque)

    def answer(self, request: Request) -> Reply:
        """Answer one call."""
        if not request.headers.get("user-agent"):
            return Refused(403, "Request forbidden by administrative rules.").reply
        try:
            return self._dispatch(request)
        except Refused as refused:
            return refused.reply

    def _dispatch(self, request: Request) -> Reply:
        if request.method == "GET" and request.path.startswith("/users/"):
            account = self._github.accounts.get(unquote(request.path[7:]).lower())
            if account is None:
                raise not_found()
            return Reply(200, account.json())
        if request.path == GRAPHQL:
            token = self._token(request)
            count = partial(self._count, token.installation)
            return graph.answer(self._github, token, request.data, count)
        if shown := _APP_PAGE.fullmatch(request.path):
            return self._show_app(shown["slug"])
        if made := _CONVERSION.fullmatch(request.path):
            app = self._github.codes.pop(made["code"], None)
            if app is None or request.method != "POST":
                raise not_found()
            return Reply(201, app.json() | {"pem": app.private_pem, "webhook_secret": app.secret})
        for route in ROUTES:
            found = route.pattern.fullmatch(request.path)
            if found is not None and route.method == request.method:
                parts = {name: unquote(value) for name, value in found.groupdict().items()}
                reply = route.handler(self._let_in(route, request, parts))
                return self._rendered(request, reply)
        raise not_found()

    def _show_app(self, slug: str) -> Reply:
        """Show a public App to everybody; a private one only to whoever it may know."""
        for app in self._github.apps.values():
            if app.slug == slug and app.public:
                return Reply(200, app.json())
        raise not_found()

    def _rendered(self, request: Request, reply: Reply) -> Reply:
        """Show a text also as people see it, if that was asked for."""
        asked = "application/vnd.github.full+json" in request.headers.get("accept", "")
        if not asked or not isinstance(reply.body, dict) or "body" not in reply.body:
            return reply
        shown = self._github.assets.render(reply.body["body"] or "")
        return Reply(reply.status, reply.body | {"body_html": shown}, reply.headers)

    def _let_in(self, route: Route, request: Request, parts: dict[str, str]) -> Asked:
        if route.needs is None:
            return Asked(self._github, request, parts, self._app(request))
        token = self._token(request)
        repository = None
        if route.of_repository:
            repository = self._repository(token, f"{parts['owner']}/{parts['name']}".lower())
        names, level = route.needs
        if not any(is_granted(token.permissions, name, level) for name in names.split("|")):
            raise Refused(403, "Resource not accessible by integration")
        if request.method != "GET":
            self._count(token.installation)
        return Asked(self._github, request, parts, token.installation.app, token, repository)

    def _app(self, request: Request) -> App:
        """Check the JWT of an App as strictly as GitHub does."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        undecodable = Refused(401, "A JSON web token could not be decoded")
        if scheme.lower() != "bearer":
            raise undecodable
        try:
            issuer = jwt.decode(given, options={"verify_signature": False})["iss"]
            app = self._github.apps.get(int(issuer))
        except (jwt.PyJWTError, KeyError, ValueError):
            raise undecodable from None
        if app is None:
            raise Refused(404, "Integration not found")
        try:
            # Its times are looked at below, by the clock of this world.
            lax = {"verify_exp": False, "verify_iat": False}
            claims = jwt.decode(given, app.public_pem, algorithms=["RS256"], options=lax)  # type: ignore[arg-type]  # a plain dict of its options
        except jwt.PyJWTError:
            raise undecodable from None
        now = self._github.now()
        if not claims.get("iat", now + 1) <= now < claims.get("exp", 0) <= now + JWT_SECONDS:
            raise Refused(401, "'Expiration time' claim ('exp') is too far in the future")
        return app

    def _token(self, request: Request) -> Token:
        given = request.headers.get("authorization", "").partition(" ")[2]
        token = self._github.tokens.get(given)
        if token is None or token.until <= self._github.now():
            raise Refused(401, "Bad credentials")
        if token.installation.suspended:
            raise Refused(403, "This installation has been suspended")
        return token

    def _repository(self, token: Token, name: str) -> Repository:
        known = self._github.repositories
        found = known.get(name) or known.get(self._github.moved.get(name, name))
        if found is None or found.id not in token.repositories:
            raise not_found()
        return found

    def _count(self, installation: Installation) -> None:
        """Refuse to make more content than GitHub allows."""
        now = self._github.now()
        made = self._writes[installation.id]
        while made and made[0] <= now - 3600:
            made.popleft()
        if sum(at > now - 60 for at in made) >= WRITES_A_MINUTE or len(made) >= WRITES_AN_HOUR:
            raise Refused(
                403, "You have exceeded a secondary rate limit. Please wait.", retry_after="60"
            )
        made.append(now)
