"""Says which role may use which route and which command: the one table that decides it.

A route that is not in the table keeps the bridge from starting, and so does one that is in it but
does not look at who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from fastapi import FastAPI, HTTPException
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from app.errors import ConfigurationError
from app.model.people import Role


class Needs(StrEnum):
    """What it takes to use a route."""

    NOTHING = "nothing"
    """It is public."""
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    TOKEN = "token"  # noqa: S105 - a word, not a token
    """The admin token itself: whoever has the bridge's machine."""


TABLE: Final[Mapping[Needs, tuple[str, ...]]] = {
    Needs.NOTHING: (
        "GET /openapi.json",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
        "GET /static/{name}",
        "GET /login/{token}",
        "POST /login/{token}",
        "GET /login/plain/{token}",
        "POST /login/plain/{token}",
    ),
    Needs.VIEWER: (
        "GET /",
        "GET /threads",
        "GET /latest/{agent}",
        "GET /grouped",
        "GET /t/{service}/{name:path}",
        "GET /events",
        "GET /events/t/{service}/{name:path}",
        "GET /steps/t/{service}/{name:path}",
        "GET /whole/t/{service}/{name:path}",
        "GET /log/t/{service}/{name:path}",
        "GET /words/t/web/{thread}",
        "GET /commands/t/{service}/{name:path}",
        "GET /names/t/{service}/{name:path}",
        "GET /uploads/{folder}/{name}",
        "GET /workspace/{session}",
        "GET /workspace/{session}/change",
        "GET /workspace/{session}/files/{path:any_path}",
        "GET /workspace/{session}/raw/{path:any_path}",
        "GET /turns/{turn}/prompt",
        "GET /export/t/{service}/{name:path}",
        "GET /agents",
        "GET /schedules",
        "GET /outcomes",
        "GET /me",
        "POST /me",
        "POST /tokens",
        "POST /tokens/{number}/revoke",
        "POST /logout",
        "GET /api/v1/agents",
        "GET /api/v1/sessions",
        "GET /api/v1/sessions/{session_id}",
        "GET /api/v1/sessions/{session_id}/turns/{turn_id}",
        "GET /api/v1/sessions/{session_id}/transcript",
        "GET /api/v1/sessions/{session_id}/events",
        "GET /api/v1/sessions/{session_id}/subagents",
        "GET /api/v1/work",
        "GET /api/v1/asks",
        "GET /api/v1/why",
        "GET /api/v1/conversations",
        "GET /api/v1/conversations/{number}",
        "GET /api/v1/conversations/{number}/contents",
        "GET /api/v1/conversations/{number}/export",
        "GET /api/v1/schedules",
        "GET /api/v1/schedules/{schedule_id}",
        "GET /api/v1/grants",
        "GET /api/v1/spending",
        "GET /api/v1/pauses",
        "GET /api/v1/me",
        "GET /api/v1/tokens",
        "POST /api/v1/tokens",
        "DELETE /api/v1/tokens/{number}",
    ),
    Needs.MEMBER: (
        "POST /send",
        "POST /repeat/t/web/{thread}",
        "POST /asks/{ask}",
        "POST /stop/t/{service}/{name:path}",
        "POST /queue/{session}/{what}",
        "POST /subagents/{number}/stop",
        "POST /work/{session_id}/stop",
        "POST /set/{session}/{kind}",
        "GET /repositories",
        "GET /repositories/check",
        "GET /manage/t/{service}/{name:path}",
        "GET /fork/t/{service}/{name:path}",
        "POST /rename/t/{service}/{name:path}",
        "POST /pin/t/{service}/{name:path}",
        "POST /archive/t/{service}/{name:path}",
        "POST /fork/t/{service}/{name:path}",
        "POST /take-back/t/{service}/{name:path}",
        "POST /schedules",
        "POST /schedules/{number}/{change}",
        "POST /api/v1/sessions",
        "PATCH /api/v1/sessions/{session_id}",
        "DELETE /api/v1/sessions/{session_id}",
        "DELETE /api/v1/sessions/{session_id}/work",
        "POST /api/v1/sessions/{session_id}/messages",
        "POST /api/v1/sessions/{session_id}/handover",
        "POST /api/v1/sessions/{session_id}/cancel",
        "POST /api/v1/sessions/{session_id}/subagents/{number}/cancel",
        "POST /api/v1/sessions/{number}/fork",
        "POST /api/v1/asks/{ask_id}/answer",
        "PATCH /api/v1/conversations/{number}",
        "POST /api/v1/conversations/{number}/fork",
        "POST /api/v1/schedules",
        "DELETE /api/v1/schedules/{schedule_id}",
        "POST /api/v1/schedules/{schedule_id}/run",
        "POST /api/v1/schedules/{schedule_id}/{change}",
        "DELETE /api/v1/grants/{grant_id}",
    ),
    Needs.ADMIN: (
        "GET /clear/t/{service}/{name:path}",
        "POST /clear/t/{service}/{name:path}",
        "GET /delete/t/{service}/{name:path}",
        "POST /delete/t/{service}/{name:path}",
        "POST /api/v1/conversations/{number}/clear",
        "DELETE /api/v1/conversations/{number}",
        "GET /record",
        "GET /api/v1/record",
        "GET /api/v1/record/export",
        "GET /api/v1/deliveries",
        "GET /api/v1/posts",
        "POST /api/v1/pauses",
        "POST /api/v1/pauses/resume",
        "GET /api/v1/drain",
        "POST /api/v1/drain",
        "DELETE /api/v1/drain",
        "GET /install/{service}/{agent}",
        "GET /install/{service}/{agent}/callback",
        "GET /new-agent",
        "GET /agents/{name}",
        "POST /agents",
        "POST /agents/{name}/set/{key}",
        "POST /agents/{name}/undo/{key}",
        "POST /agents/{name}/env",
        "POST /agents/{name}/connect/{service}",
        "POST /agents/{name}/disconnect/{service}",
        "POST /agents/{name}/isolate",
        "POST /agents/{name}/acknowledge",
        "POST /agents/{name}/probe",
        "POST /agents/{name}/rename",
        "POST /agents/{name}/default",
        "POST /agents/{name}/remove",
        "GET /agents/{name}/files/{path:path}",
        "POST /agents/{name}/files/{path:path}",
        "GET /agent-files/{path:path}",
        "POST /agent-files/{path:path}",
        "GET /agents/{name}/memory",
        "POST /agents/{name}/memory/{day}/{note}",
        "POST /api/v1/agents",
        "POST /api/v1/agents/reload",
        "GET /api/v1/agents/{name}",
        "PATCH /api/v1/agents/{name}",
        "DELETE /api/v1/agents/{name}",
        "POST /api/v1/agents/{name}/default",
        "POST /api/v1/agents/{name}/acknowledge",
        "POST /api/v1/agents/{name}/rename",
        "POST /api/v1/agents/{name}/probe",
        "GET /api/v1/agents/{name}/files",
        "GET /api/v1/agents/{name}/files/{path:path}",
        "PUT /api/v1/agents/{name}/files/{path:path}",
        "DELETE /api/v1/agents/{name}/files/{path:path}",
        "POST /api/v1/agents/{name}/files/{path:path}/undo",
        "GET /api/v1/files",
        "GET /api/v1/files/{path:path}",
        "PUT /api/v1/files/{path:path}",
        "DELETE /api/v1/files/{path:path}",
        "POST /api/v1/files/{path:path}/undo",
        "GET /api/v1/agents/{name}/memory",
        "DELETE /api/v1/agents/{name}/memory/{day}/{note}",
        "GET /people",
        "POST /people/{number}/role",
        "POST /people/{number}/{change}",
        "GET /api/v1/users",
        "PATCH /api/v1/users/{number}",
    ),
    Needs.TOKEN: (
        "POST /api/v1/login-links",
        "DELETE /api/v1/logins",
        "POST /api/v1/purges",
        "GET /api/v1/people",
        "DELETE /api/v1/people/{service}/{who:path}",
    ),
}
"""Each route as its method and its path, under what it takes to use it."""

COMMANDS: Final[Mapping[Needs, tuple[str, ...]]] = {
    Needs.VIEWER: (
        *("agents list", "grants list", "pauses", "schedules list", "spending"),
        *("conversations export", "conversations latest", "conversations list"),
        *("conversations search", "conversations show", "sessions list", "sessions show"),
        *("tokens list", "tokens revoke", "why"),
    ),
    Needs.MEMBER: (
        *("ask", "grants revoke", "conversations archive", "conversations fork"),
        *("conversations pin", "conversations rename", "conversations unarchive"),
        *("conversations unpin", "schedules add", "schedules pause", "schedules remove"),
        *("schedules resume", "schedules run"),
    ),
    Needs.ADMIN: (
        *("agents add", "agents default", "agents export", "agents files", "agents import"),
        *("agents memory", "agents reload", "agents remove", "agents rename", "agents set"),
        *("agents show", "agents unset", "conversations clear", "conversations delete"),
        *("drain", "pause", "resume", "people disable", "people enable", "people list"),
        *("people role", "audit list", "audit export"),
    ),
    Needs.TOKEN: (
        *(
            "agents login",
            "agents probe",
            "audit verify",
            "backup",
            "doctor",
            "forget",
            "login",
            "manifest",
        ),
        *("migrate", "people roles", "purge", "relay", "restore", "serve", "tokens add"),
    ),
}
"""Each command with what the token must have that it sends to the running bridge: the admin token,
or that of a person in BRIDGE_ADMIN_TOKEN. Those under `TOKEN` work on the bridge's own files."""


class RoleMissing(HTTPException):
    """The sender of a request is known, and their role does not allow it."""

    def __init__(self, needed: Role, have: Role, admins: Iterable[str]) -> None:
        own = "you have no role here yet" if have is Role.NONE else f"your role is {have.value}"
        names = ", ".join(admins)
        who = f"an admin ({names})" if names else "an admin"
        words = f"this needs the role {needed.value}, and {own}. Ask {who} to change it"
        super().__init__(403, f"{words}: page People, or `agent-bridge people role`")
        self.sentence = f"{words[:1].upper()}{words[1:]} on the page People."


class Rights:
    """The table, with what features of other packages add to it."""

    def __init__(self, added: Mapping[str, str] = MappingProxyType({})) -> None:
        """Read the table; `added` has what each route of other packages needs.

        Raises:
            ConfigurationError: a package names a need that there is not.
        """
        self._needs = {route: needs for needs, routes in TABLE.items() for route in routes}
        for route, needed in added.items():
            try:
                self._needs[route] = Needs(needed)
            except ValueError:
                names = ", ".join(Needs)
                raise _unfit(route, f"needs {needed!r}", f"Use one of {names}.") from None

    def of(self, method: str, path: str) -> Needs:
        """Return what a route needs, by its method and the path that it was declared with."""
        return self._needs[f"{method} {path}"]

    def check(self, application: FastAPI, guard: Callable[..., object]) -> None:
        """Check that every route is in the table, and that the guard looks at who asks for it.

        Raises:
            ConfigurationError: one is not, or asks no guard.
        """
        for method, path, route in routes_of(application):
            name = f"{method} {path}"
            if name not in self._needs:
                raise _unfit(name, "is not in the table of rights", "Say which role may use it.")
            is_guarded = isinstance(route, APIRoute) and guard in _calls(route.dependant)
            if self._needs[name] is not Needs.NOTHING and not is_guarded:
                raise _unfit(name, "does not look at who asks", "Let it depend on `visitor`.")


def routes_of(application: FastAPI) -> Iterator[tuple[str, str, object]]:
    """List every route of an application: method, path and the route itself."""
    for context in iter_route_contexts(application.routes):
        route = context.original_route
        for method in sorted(getattr(route, "methods", None) or ()):
            if method != "HEAD":
                yield method, getattr(route, "path", ""), route


def _calls(dependant: Dependant) -> Iterator[Callable[..., object]]:
    for each in dependant.dependencies:
        if each.call is not None:
            yield each.call
        yield from _calls(each)


def _unfit(route: str, problem: str, remedy: str) -> ConfigurationError:
    return ConfigurationError("app/server/rights.py", f"{route} {problem}", remedy)
