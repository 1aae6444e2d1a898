"""Signing in over HTTP: who sends a request, the log-in link, and the end of log-ins.

A cookie alone changes nothing: whoever uses one must also show that an own page sent the request.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.server import doorstep
from app.server.door import LOGIN_SECONDS
from app.server.parts import Parts, PartsOf, parts_of
from app.server.problems import problem
from app.server.shapes import LinkOut

logger = logging.getLogger(__name__)

CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
OPERATOR: Final = "operator"
"""Whoever is signed in; there is one person so far."""

_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")

_bearer = HTTPBearer(auto_error=False, description="BRIDGE_ADMIN_TOKEN")
Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whoever sends a request and may."""

    name: str
    csrf: str = ""
    """What a page sends back with whatever changes something; empty for the bearer of the token."""
    login: str = ""
    """The log-in behind the cookie; empty for the bearer of the token."""


class NotSignedIn(HTTPException):
    """Nobody that is known sends this request."""

    def __init__(self) -> None:
        super().__init__(
            401,
            "send the admin token as a bearer token, or log in with the link that the bridge "
            "printed when it was started",
        )


async def visitor(request: Request, parts: PartsOf, given: Given) -> AsyncIterator[Visitor]:
    """Let in the bearer of the admin token and the owner of a cookie, nobody else.

    Raises:
        NotSignedIn: answered with a page where a page was asked for.
        HTTPException: the cookie is right, but the request does not come from an own page.
    """
    who = _recognise(request, parts, given)
    try:
        if who.login and request.method not in _SAFE_METHODS:
            await _check_sender(request, who)
        yield who
    finally:
        # Looking for the token may have read a form, files and all.
        await request.close()


async def with_token(parts: PartsOf, given: Given) -> None:
    """Let in only the bearer of the admin token: a log-in must not make further ones."""
    if given is None or not _is_admin(parts, given):
        raise HTTPException(401, "send the admin token as a bearer token")


class SignedInRoute(APIRoute):
    """A route that knows who is there before it reads what was sent.

    FastAPI reads and parses a body before it asks any dependency: `visitor` alone would let a
    stranger fill the memory.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Look at the sender, then handle the request."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            _recognise(request, parts_of(request), await _bearer(request))
            self.check(request)
            return await handle(request)

        return guarded

    def check(self, request: Request) -> None:
        """Refuse a request by its head; here none is."""


pages = APIRouter(include_in_schema=False)
api = APIRouter(prefix="/api/v1", dependencies=[Depends(with_token)])


@pages.get("/login/{token}")
async def log_in(parts: PartsOf, token: str) -> Response:
    """Exchange a link for a cookie, once."""
    cookie = await parts.door.exchange(token)
    if cookie is None:
        return doorstep.link_of_no_use()
    logger.info("somebody signed in with a log-in link")
    answer = RedirectResponse("/", 303, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        parts.door.cookie_name,
        cookie,
        max_age=LOGIN_SECONDS,
        secure=parts.door.secure,
        httponly=True,
        # Not strict: the link may be clicked in a terminal or a post that is itself a web page, and
        # then a strict cookie is not even sent along with the redirect.
        samesite="lax",
    )
    return answer


@pages.post("/logout")
async def log_out(parts: PartsOf, who: Annotated[Visitor, Depends(visitor)]) -> Response:
    """End this browser's log-in."""
    if who.login:
        await parts.door.close(who.login)
    answer = doorstep.signed_out()
    answer.delete_cookie(
        parts.door.cookie_name, secure=parts.door.secure, httponly=True, samesite="lax"
    )
    return answer


@api.post("/login-links", status_code=201)
async def make_link(parts: PartsOf) -> LinkOut:
    """Make a link that logs in whoever opens it first, within 15 minutes."""
    return LinkOut(url=await parts.door.make_link())


@api.delete("/logins", status_code=204)
async def end_logins(parts: PartsOf) -> None:
    """End every log-in and every link that was not opened."""
    await parts.door.close_all()
    logger.info("all log-ins were ended")


def install(application: FastAPI) -> None:
    """Add signing in to an application."""
    application.include_router(pages)
    application.include_router(api)
    application.add_exception_handler(NotSignedIn, _not_signed_in)


async def _not_signed_in(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotSignedIn)
    is_page = request.method == "GET" and not request.url.path.startswith("/api/")
    if is_page and "text/html" in request.headers.get("accept", ""):
        return doorstep.not_signed_in()
    return problem(error.status_code, error.detail)


def _recognise(request: Request, parts: Parts, given: Given) -> Visitor:
    if given is not None:
        if _is_admin(parts, given):
            return Visitor(OPERATOR)
    elif login := parts.door.login_of(request.cookies.get(parts.door.cookie_name, "")):
        return Visitor(OPERATOR, parts.door.form_token(login), login)
    raise NotSignedIn


def _is_admin(parts: Parts, given: HTTPAuthorizationCredentials) -> bool:
    return secrets.compare_digest(given.credentials.encode(), parts.admin_token.encode())


async def _check_sender(request: Request, who: Visitor) -> None:
    """Refuse what another page may have made the browser send."""
    if not _is_own(request):
        raise HTTPException(403, "requests from other sites are refused")
    if not secrets.compare_digest((await _csrf(request)).encode(), who.csrf.encode()):
        raise HTTPException(
            403, f"send the page's token as {CSRF_HEADER} or {CSRF_FIELD}; reload the page for it"
        )


def _is_own(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    return origin.lower().partition("://")[2] == request.headers.get("host", "").lower()


async def _csrf(request: Request) -> str:
    sent = request.headers.get(CSRF_HEADER)
    if sent is None and request.headers.get("content-type", "").startswith(_FORMS):
        field = (await request.form()).get(CSRF_FIELD)
        sent = field if isinstance(field, str) else None
    return sent or ""
