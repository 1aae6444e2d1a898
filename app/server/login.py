"""Authenticates HTTP requests, and lets people do what their role allows.

A cookie alone changes nothing: a request with one must also prove that our own page sent it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.errors import LoginTooOld
from app.model.people import Person, Role, Token
from app.server.front import own_origin
from app.server.login_links import FRESH_SECONDS, LoginLinks
from app.server.rights import Needs, RoleMissing
from app.server.site import Site, SiteOf, site_of

CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
OPERATOR: Final = "operator"
"""The bearer of the admin token, and whoever opened a log-in link without giving a name."""

GUARDED: Final = frozenset(
    {
        *("command", "driver", "extends", "url", "tls", "env", "env_passthrough"),
        *("remote_folder", "sandbox", "home", "network", "network_hosts", "limits"),
    }
)
"""Keys of an agent's entry that decide which program runs, and with which protection. Others grant
nothing that the conversations of a log-in do not: the person answers the agent's asks there."""

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")

_bearer = HTTPBearer(auto_error=False, description="A token of a person, or BRIDGE_ADMIN_TOKEN")
Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


@dataclass(frozen=True, slots=True)
class Visitor:
    """The authenticated sender of a request."""

    name: str
    role: Role = Role.ADMIN
    person: Person | None = None
    """None for the operator."""
    csrf: str = ""
    """The token that a page sends with each change; empty for the bearer of a token."""
    login: str = ""
    """The log-in behind the cookie; empty for the bearer of a token."""
    token: Token | None = None
    """The person's token that was sent; None for a cookie and for the admin token."""
    done: str = ""
    """The code of what the form did whose answer this page is; empty for other pages."""
    is_fresh: bool = True
    """Whether the person has just proved who they are; the admin token always does."""

    @property
    def id(self) -> str:
        """The id under which messages name the visitor."""
        return OPERATOR if self.person is None else self.person.speaker

    @property
    def has_admin_token(self) -> bool:
        """Whether the visitor sent the admin token itself."""
        return not self.login and self.token is None


class NotSignedIn(HTTPException):
    """The sender of a request is not signed in."""

    def __init__(self) -> None:
        super().__init__(
            401,
            "send the admin token as a bearer token, or log in with the link that "
            "`agent-bridge login` prints",
        )


async def visitor(request: Request, site: SiteOf, given: Given) -> AsyncIterator[Visitor]:
    """Accept people whose role may use the route, and the bearer of the admin token.

    Raises:
        NotSignedIn: answered with a page where a page was requested.
        RoleMissing: the person's role does not allow it.
        HTTPException: the cookie is right, but the request does not come from our own page.
    """
    who = await _admit(request, site, given)
    try:
        if who.login and request.method not in _SAFE_METHODS:
            await _check_sender(request, who)
        if who.token is not None:
            await site.tokens.note_use(who.token)
        yield who
    finally:
        # Looking for the token may have read a form, files and all.
        await request.close()


def require_fresh(who: Visitor, keys: Iterable[str] = GUARDED) -> None:
    """Refuse to let an old log-in decide which program runs, or with which protection.

    Raises:
        LoginTooOld: one of the keys of an agent's entry decides that.
    """
    if not who.is_fresh and not GUARDED.isdisjoint(keys):
        raise LoginTooOld(FRESH_SECONDS // 60)


async def is_signed_in(request: Request, site: SiteOf, given: Given) -> bool:
    """Return whether the sender of a request to a public path is signed in and may see details.

    Raises:
        NotSignedIn: it has a wrong token.
    """
    try:
        who = _recognise(request, site, given)
    except NotSignedIn:
        if given is not None:
            raise
        return False
    return who.role.covers(Role.VIEWER)


def is_welcome(site: Site, who: Visitor) -> bool:
    """Tell whether a visitor whose request goes on may still read; the admin token always may."""
    if who.login:
        return site.links.lasts(who.login)
    return who.token is None or site.tokens.lasts(who.token.id)


class SignedInRoute(APIRoute):
    """A route that checks the sender before it reads the body.

    FastAPI reads and parses a body before it calls any dependency: `visitor` alone would let a
    stranger fill the memory.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check the sender, then handle the request."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            await _admit(request, site_of(request), await _bearer(request))
            self.check(request)
            return await handle(request)

        return guarded

    def check(self, request: Request) -> None:
        """Refuse a request by its headers; here every request passes."""


def door_of(request: Request, site: Site) -> LoginLinks:
    """Return the log-ins of the address that a request was sent to."""
    return site.links.at(request.headers.get("host", ""))


def peer_of(request: Request) -> str:
    """Return the address that a request came from."""
    return request.client.host if request.client is not None else ""


async def _admit(request: Request, site: Site, given: Given) -> Visitor:
    """Recognise the sender, and check their role against the table of rights."""
    who = _recognise(request, site, given)
    needed = site.rights.of(request.method, request.scope["route"].path)
    if needed is Needs.TOKEN and not who.has_admin_token:
        raise HTTPException(401, "send the admin token as a bearer token")
    role = Role.ADMIN if needed is Needs.TOKEN else Role(needed)
    if not who.role.covers(role):
        raise RoleMissing(role, who.role, await site.admins())
    return who


def _recognise(request: Request, site: Site, given: Given) -> Visitor:
    if given is not None:
        if secrets.compare_digest(given.credentials.encode(), site.admin_token.encode()):
            return Visitor(OPERATOR)
        if (found := site.tokens.find(given.credentials)) is not None:
            token, person = found
            # Not fresh: it may have been in a script for months.
            return Visitor(person.name, token.role, person, token=token, is_fresh=False)
        site.links.guesses.count(peer_of(request))
        raise NotSignedIn
    door = door_of(request, site)
    cookie = request.cookies.get(door.cookie_name, "")
    login = door.login_of(cookie)
    if login is None:
        raise NotSignedIn
    return Visitor(
        OPERATOR if login.person is None else login.person.name,
        Role.ADMIN if login.person is None else login.person.role,
        login.person,
        csrf=door.form_token(cookie),
        login=login.id,
        done=request.query_params.get("done", ""),
        is_fresh=door.is_fresh(login),
    )


async def _check_sender(request: Request, who: Visitor) -> None:
    """Refuse a request that another page may have made the browser send."""
    if not _is_own(request, site_of(request).links.base_url):
        raise HTTPException(403, "requests from other sites are refused")
    if not secrets.compare_digest((await _csrf(request)).encode(), who.csrf.encode()):
        raise HTTPException(
            403, f"wrong page token in {CSRF_HEADER} or {CSRF_FIELD}; reload the page"
        )


def _is_own(request: Request, base_url: str) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    return origin.lower() == own_origin(request.headers.get("host", ""), base_url)


async def _csrf(request: Request) -> str:
    sent = request.headers.get(CSRF_HEADER)
    if sent is None and request.headers.get("content-type", "").startswith(_FORMS):
        field = (await request.form()).get(CSRF_FIELD)
        sent = field if isinstance(field, str) else None
    return sent or ""
