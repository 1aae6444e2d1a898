"""Serves log-in links and what people see while they are not signed in; ends log-ins."""

from __future__ import annotations

import logging
from html import escape
from typing import Annotated, Final

from fastapi import APIRouter, Depends, FastAPI, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import AfterValidator, BaseModel, ConfigDict

from app.model.people import Role
from app.server.login import (
    OPERATOR,
    NotSignedIn,
    SignedInRoute,
    Visitor,
    door_of,
    peer_of,
    visitor,
)
from app.server.login_links import LoginLinks
from app.server.problems import plain_page, problem
from app.server.rights import RoleMissing
from app.server.shapes import LinkOut
from app.server.site import RuntimeOf, Site, SiteOf, site_of

logger = logging.getLogger(__name__)

NAME_CHARACTERS: Final = 80

_LINKS: Final = """<p>For a new link, run this on the bridge's machine, with the same settings:
</p>
<pre>agent-bridge login</pre>
<p>After <code>make run</code> it is <code>.venv/bin/agent-bridge login</code> in the same folder;
in a container, <code>docker compose exec bridge agent-bridge login</code>.</p>"""
_MOVED: Final = """<p>The link opens the page's own address. If this browser is already signed in,
find that address in its history.</p>"""
_BUTTON: Final = "<p><button{focus}>Sign in</button></p></form>"
_NAME: Final = """<p><label for="name">Your name, as others will see it</label>
<input id="name" name="name" maxlength="80" autocomplete="name" autofocus
 placeholder="operator"></p>"""


def clean_name(given: str) -> str:
    """Return a name in one line, without what cannot be seen; the operator has none."""
    line = " ".join("".join(each if each.isprintable() else " " for each in given).split())
    return "" if line.casefold() == OPERATOR else line[:NAME_CHARACTERS]


PersonName = Annotated[str, AfterValidator(clean_name)]


class NewLink(BaseModel):
    """Whom a log-in link is for."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: PersonName = ""
    """The person; without one the page asks for a name."""
    role: Role | None = None
    """Their role from now on; someone new is an admin without it."""


pages = APIRouter(include_in_schema=False)
api = APIRouter(prefix="/api/v1", route_class=SignedInRoute, dependencies=[Depends(visitor)])


@pages.get("/login/{token}")
async def show_link(request: Request, site: SiteOf, token: str) -> Response:
    """Ask for one click: programs that open links in advance must not use them up."""
    return _elsewhere(request, site, token) or _sign_in_page(site, token)


@pages.post("/login/{token}")
async def log_in(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    token: str,
    name: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Exchange a link for a cookie, once."""
    if (elsewhere := _elsewhere(request, site, token)) is not None:
        return elsewhere
    return await _let_in(request, runtime, site.links, token, name)


@pages.get("/login/plain/{token}")
async def show_plain_link(request: Request, site: SiteOf, token: str) -> Response:
    """Ask for one click at the plain address, and say what is different there."""
    return _elsewhere(request, site, token, plain=True) or _sign_in_page(site, token, plain=True)


@pages.post("/login/plain/{token}")
async def log_in_plainly(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    token: str,
    name: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Exchange a link for a cookie of the plain address, once."""
    if (elsewhere := _elsewhere(request, site, token, plain=True)) is not None:
        return elsewhere
    return await _let_in(request, runtime, door_of(request, site), token, name)


async def _let_in(
    request: Request, runtime: RuntimeOf, door: LoginLinks, token: str, given: str
) -> Response:
    name, person = clean_name(given), door.offered_to(token)
    if person is None and name:
        person = await runtime.stores.people.ensure_named(name, None)
    if person is not None and person.disabled_at is not None:
        return _disabled_page(person.name)
    earlier = request.cookies.get(door.cookie_name, "")
    cookie = await door.exchange(token, earlier, None if person is None else person.id)
    if cookie is None:
        return _link_expired_page()
    logger.info("signed in with a log-in link%s", " at the plain address" * door.is_plain)
    answer = RedirectResponse("/", 303, headers={"Cache-Control": "no-store"})
    # Not strict: the link may be clicked in a terminal or a post that is itself a web page, and
    # then a strict cookie is not even sent along with the redirect.
    set_cookie(answer, door, cookie)
    return answer


def set_cookie(answer: Response, door: LoginLinks, cookie: str) -> None:
    """Keep a log-in in the browser."""
    answer.set_cookie(
        door.cookie_name,
        cookie,
        # That of the plain address also ends with the browser.
        max_age=None if door.is_plain else door.seconds,
        secure=door.secure,
        httponly=True,
        # At the plain address other sites must not even show that it is there.
        samesite="strict" if door.is_plain else "lax",
    )


@pages.post("/logout")
async def log_out(
    request: Request, site: SiteOf, who: Annotated[Visitor, Depends(visitor)]
) -> Response:
    """End this browser's log-in."""
    door = door_of(request, site)
    if who.login:
        await site.links.close(who.login)
    answer = _signed_out_page()
    answer.delete_cookie(door.cookie_name, secure=door.secure, httponly=True, samesite="lax")
    return answer


@api.post("/login-links", status_code=201)
async def make_link(runtime: RuntimeOf, site: SiteOf, new: NewLink | None = None) -> LinkOut:
    """Make a link that logs in the first person who opens it, within 15 minutes."""
    person = None
    if new is not None and new.name:
        person = await runtime.stores.people.ensure_named(new.name, new.role)
    link = await site.links.make_link(None if person is None else person.id)
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
    application.add_exception_handler(RoleMissing, _role_missing)


async def _not_signed_in(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotSignedIn)
    if _wants_page(request):
        site = site_of(request)
        door = door_of(request, site)
        host = request.headers.get("host", "").lower()
        is_own = host == door.host and not door.is_plain
        return _not_signed_in_page(own_address=is_own)
    return problem(error.status_code, error.detail)


async def _role_missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, RoleMissing)
    if _wants_page(request):
        words = f'<p>{escape(error.sentence)}</p><p><a href="/">Open the page</a>.</p>'
        return plain_page(error.status_code, "You may not do this", words)
    return problem(error.status_code, error.detail)


def _wants_page(request: Request) -> bool:
    is_page = not request.url.path.startswith("/api/")
    return is_page and "text/html" in request.headers.get("accept", "")


def _elsewhere(request: Request, site: Site, token: str, *, plain: bool = False) -> Response | None:
    """Answer a link that does not work, or one that was opened under another host name.

    Only a link that works redirects to the page's host name, which stays unknown to others; and
    only the link of the plain address is used there, so that no one gets its cookie by mistake.
    """
    if not site.links.is_open(token):
        site.links.guesses.count(peer_of(request))
        return _link_expired_page()
    door = door_of(request, site)
    if request.headers.get("host", "").lower() == door.host and door.is_plain == plain:
        return None
    return RedirectResponse(site.links.link(token), 303, headers={"Cache-Control": "no-store"})


def _not_signed_in_page(*, own_address: bool) -> Response:
    """Explain how to log in, or that the page is at another address."""
    words = (
        "<p>Open a log-in link. It works once, within 15 minutes, and this browser stays signed "
        "in for 30 days.</p>" + ("" if own_address else _MOVED) + _LINKS
    )
    return plain_page(401, "You are not signed in", words)


def _sign_in_page(site: Site, token: str, *, plain: bool = False) -> Response:
    """Show the button that uses up a log-in link, and ask who opens it."""
    title, words = "Sign in to Agent Bridge", "This browser stays signed in for 30 days."
    if plain:
        title = "Sign in at the plain address"
        words = (
            "This browser stays signed in until you close it, at most for 12 hours.</p>"
            "<p>Browsers send the cookie of this address to every server on this machine "
            "that you open. Until you sign out, do not open in this browser what agents serve at "
            "127.0.0.1. The link with the page's own name has no such limit."
        )
    person = site.links.offered_to(token)
    asked = _NAME if person is None else f"<p>You sign in as <b>{escape(person.name)}</b>.</p>"
    form = f'<form method="post">{asked}{_BUTTON.format(focus=" autofocus" if person else "")}'
    return plain_page(200, title, f"<p>This link works once. {words}</p>{form}")


def _link_expired_page() -> Response:
    """Say that this link no longer works."""
    return plain_page(
        410,
        "This log-in link no longer works",
        "<p>A link works once, within 15 minutes. This one was used, expired or was revoked. "
        'If you used it in this browser, <a href="/">open the page</a>.</p>' + _LINKS,
    )


def _disabled_page(name: str) -> Response:
    """Say that a person is kept out."""
    words = f"<p>{escape(name)} was disabled. An admin can change that on the page People.</p>"
    return plain_page(403, "You cannot sign in", words)


def _signed_out_page() -> Response:
    """Say that the log-in has ended."""
    words = "<p>Log in again to use the bridge in this browser.</p>"
    return plain_page(200, "You are signed out", words + _LINKS)
