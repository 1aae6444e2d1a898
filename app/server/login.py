"""Authenticates HTTP requests, exchanges log-in links for cookies, and ends log-ins.

A cookie alone changes nothing: a request with one must also prove that our own page sent it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.errors import LoginTooOld
from app.server.front import own_origin
from app.server.login_links import FRESH_SECONDS, LoginLinks
from app.server.problems import plain_page, problem
from app.server.shapes import LinkOut
from app.server.site import Site, SiteOf, site_of

logger = logging.getLogger(__name__)

CSRF_HEADER: Final = "X-CSRF-Token"
CSRF_FIELD: Final = "csrf"
OPERATOR: Final = "operator"
"""The person who is signed in; there is one so far."""

GUARDED: Final = frozenset(
    {
        *("command", "driver", "extends", "url", "tls", "env", "env_passthrough"),
        *("remote_folder", "sandbox", "home", "network", "network_hosts", "limits"),
    }
)
"""Keys of an agent's entry that decide which program runs, and with which protection. Others grant
nothing that the conversations of a log-in do not: the person answers the agent's asks there."""

_LINKS: Final = """<p>For a new link, run this on the bridge's machine, with the same settings:
</p>
<pre>agent-bridge login</pre>
<p>After <code>make run</code> it is <code>.venv/bin/agent-bridge login</code> in the same folder;
in a container, <code>docker compose exec bridge agent-bridge login</code>.</p>"""
_MOVED: Final = """<p>The link opens the page's own address. If this browser is already signed in,
find that address in its history.</p>"""
_BUTTON: Final = '<form method="post"><button autofocus>Sign in</button></form>'
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")

_bearer = HTTPBearer(auto_error=False, description="BRIDGE_ADMIN_TOKEN")
Given = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


@dataclass(frozen=True, slots=True)
class Visitor:
    """The authenticated sender of a request."""

    name: str
    csrf: str = ""
    """The token that a page sends with each change; empty for the bearer of the admin token."""
    login: str = ""
    """The log-in behind the cookie; empty for the bearer of the admin token."""
    done: str = ""
    """The code of what the form did whose answer this page is; empty for other pages."""
    is_fresh: bool = True
    """Whether the log-in has just begun; the bearer of the admin token always counts as fresh."""


class NotSignedIn(HTTPException):
    """The sender of a request is not signed in."""

    def __init__(self) -> None:
        super().__init__(
            401,
            "send the admin token as a bearer token, or log in with the link that "
            "`agent-bridge login` prints",
        )


async def visitor(request: Request, site: SiteOf, given: Given) -> AsyncIterator[Visitor]:
    """Accept the bearer of the admin token and the owner of a cookie, no one else.

    Raises:
        NotSignedIn: answered with a page where a page was requested.
        HTTPException: the cookie is right, but the request does not come from our own page.
    """
    who = _recognise(request, site, given)
    try:
        if who.login and request.method not in _SAFE_METHODS:
            await _check_sender(request, who)
        yield who
    finally:
        # Looking for the token may have read a form, files and all.
        await request.close()


async def with_token(request: Request, site: SiteOf, given: Given) -> None:
    """Accept only the bearer of the admin token: a log-in must not create further ones."""
    if given is None or not _is_admin(request, site, given):
        raise HTTPException(401, "send the admin token as a bearer token")


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
        _recognise(request, site, given)
    except NotSignedIn:
        if given is not None:
            raise
        return False
    return True


class SignedInRoute(APIRoute):
    """A route that checks the sender before it reads the body.

    FastAPI reads and parses a body before it calls any dependency: `visitor` alone would let a
    stranger fill the memory.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check the sender, then handle the request."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            _recognise(request, site_of(request), await _bearer(request))
            self.check(request)
            return await handle(request)

        return guarded

    def check(self, request: Request) -> None:
        """Refuse a request by its headers; here every request passes."""


pages = APIRouter(include_in_schema=False)
api = APIRouter(prefix="/api/v1", route_class=SignedInRoute, dependencies=[Depends(with_token)])


@pages.get("/login/{token}")
async def show_link(request: Request, site: SiteOf, token: str) -> Response:
    """Ask for one click: programs that open links in advance must not use them up."""
    return _elsewhere(request, site, token) or _sign_in_page()


@pages.post("/login/{token}")
async def log_in(request: Request, site: SiteOf, token: str) -> Response:
    """Exchange a link for a cookie, once."""
    if (elsewhere := _elsewhere(request, site, token)) is not None:
        return elsewhere
    return await _let_in(request, site.links, token)


@pages.get("/login/plain/{token}")
async def show_plain_link(request: Request, site: SiteOf, token: str) -> Response:
    """Ask for one click at the plain address, and say what is different there."""
    return _elsewhere(request, site, token, plain=True) or _sign_in_plainly_page()


@pages.post("/login/plain/{token}")
async def log_in_plainly(request: Request, site: SiteOf, token: str) -> Response:
    """Exchange a link for a cookie of the plain address, once."""
    if (elsewhere := _elsewhere(request, site, token, plain=True)) is not None:
        return elsewhere
    return await _let_in(request, _door_of(request, site), token)


async def _let_in(request: Request, door: LoginLinks, token: str) -> Response:
    cookie = await door.exchange(token, request.cookies.get(door.cookie_name, ""))
    if cookie is None:
        return _link_expired_page()
    logger.info("signed in with a log-in link%s", " at the plain address" * door.is_plain)
    answer = RedirectResponse("/", 303, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        door.cookie_name,
        cookie,
        # That of the plain address also ends with the browser.
        max_age=None if door.is_plain else door.seconds,
        secure=door.secure,
        httponly=True,
        # Not strict: the link may be clicked in a terminal or a post that is itself a web page, and
        # then a strict cookie is not even sent along with the redirect. At the plain address other
        # sites must not even show that it is there.
        samesite="strict" if door.is_plain else "lax",
    )
    return answer


@pages.post("/logout")
async def log_out(
    request: Request, site: SiteOf, who: Annotated[Visitor, Depends(visitor)]
) -> Response:
    """End this browser's log-in."""
    door = _door_of(request, site)
    if who.login:
        await site.links.close(who.login)
    answer = _signed_out_page()
    answer.delete_cookie(door.cookie_name, secure=door.secure, httponly=True, samesite="lax")
    return answer


@api.post("/login-links", status_code=201)
async def make_link(site: SiteOf) -> LinkOut:
    """Make a link that logs in the first person who opens it, within 15 minutes."""
    link = await site.links.make_link()
    return LinkOut(url=link, plain=site.links.plain_link(link))


@api.delete("/logins", status_code=204)
async def end_logins(site: SiteOf) -> None:
    """End every log-in and every unused link."""
    await site.links.close_all()
    logger.info("ended all log-ins")


def install(application: FastAPI) -> None:
    """Add log-in to an application."""
    application.include_router(pages)
    application.include_router(api)
    application.add_exception_handler(NotSignedIn, _not_signed_in)


async def _not_signed_in(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotSignedIn)
    is_page = not request.url.path.startswith("/api/")
    if is_page and "text/html" in request.headers.get("accept", ""):
        door = _door_of(request, site_of(request))
        host = request.headers.get("host", "").lower()
        return _not_signed_in_page(own_address=host == door.host and not door.is_plain)
    return problem(error.status_code, error.detail)


def _door_of(request: Request, site: Site) -> LoginLinks:
    return site.links.at(request.headers.get("host", ""))


def _elsewhere(request: Request, site: Site, token: str, *, plain: bool = False) -> Response | None:
    """Answer a link that does not work, or one that was opened under another host name.

    Only a link that works redirects to the page's host name, which stays unknown to others; and
    only the link of the plain address is used there, so that no one gets its cookie by mistake.
    """
    if not site.links.is_open(token):
        site.links.guesses.count(_peer(request))
        return _link_expired_page()
    door = _door_of(request, site)
    if request.headers.get("host", "").lower() == door.host and door.is_plain == plain:
        return None
    return RedirectResponse(site.links.link(token), 303, headers={"Cache-Control": "no-store"})


def _recognise(request: Request, site: Site, given: Given) -> Visitor:
    if given is not None:
        if _is_admin(request, site, given):
            return Visitor(OPERATOR)
    else:
        door = _door_of(request, site)
        cookie = request.cookies.get(door.cookie_name, "")
        if login := door.login_of(cookie):
            done, is_fresh = request.query_params.get("done", ""), door.is_fresh(login)
            return Visitor(OPERATOR, door.form_token(cookie), login, done, is_fresh)
    raise NotSignedIn


def _is_admin(request: Request, site: Site, given: HTTPAuthorizationCredentials) -> bool:
    is_right = secrets.compare_digest(given.credentials.encode(), site.admin_token.encode())
    if not is_right:
        site.links.guesses.count(_peer(request))
    return is_right


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else ""


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


def _not_signed_in_page(*, own_address: bool) -> Response:
    """Explain how to log in, or that the page is at another address."""
    return plain_page(
        401,
        "You are not signed in",
        "<p>Open a log-in link. It works once, within 15 minutes, and this browser stays signed "
        "in for 30 days.</p>" + ("" if own_address else _MOVED) + _LINKS,
    )


def _sign_in_page() -> Response:
    """Show the button that uses up a log-in link."""
    words = "<p>This link works once. This browser stays signed in for 30 days.</p>"
    return plain_page(200, "Sign in to Agent Bridge", words + _BUTTON)


def _sign_in_plainly_page() -> Response:
    """Show the button at the plain address of this machine, and what is different there."""
    words = (
        "<p>This link works once. This browser stays signed in until you close it, at most for 12 "
        "hours.</p><p>Browsers send the cookie of this address to every server on this machine "
        "that you open. Until you sign out, do not open in this browser what agents serve at "
        "127.0.0.1. The link with the page's own name has no such limit.</p>"
    )
    return plain_page(200, "Sign in at the plain address", words + _BUTTON)


def _link_expired_page() -> Response:
    """Say that this link no longer works."""
    return plain_page(
        410,
        "This log-in link no longer works",
        "<p>A link works once, within 15 minutes. This one was used, expired or was revoked. "
        'If you used it in this browser, <a href="/">open the page</a>.</p>' + _LINKS,
    )


def _signed_out_page() -> Response:
    """Say that the log-in has ended."""
    words = "<p>Log in again to use the bridge in this browser.</p>"
    return plain_page(200, "You are signed out", words + _LINKS)
