"""Serves pages about files of sessions that another member of the installation has.

The member that has them builds the page; the one that was asked has checked who asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import httpx
from fastapi import Depends, FastAPI, Request
from fastapi.responses import Response
from starlette.types import ASGIApp

from app.errors import Conflict
from app.server.login import Visitor, visitor
from app.server.site import SiteOf
from app.signals import Facts, Signals, Topic

SECONDS = 20.0
"""How long another member may take: it runs git."""
MOST_BYTES = 4 * 1024 * 1024
"""The largest page or file that is fetched from another member."""
PASSED = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-security-policy",
        "content-type",
        "x-content-type-options",
    }
)
"""Headers that belong to the page itself."""


class Elsewhere:
    """The pages that other members build."""

    def __init__(self, signals: Signals, find_server: Callable[[int], str | None]) -> None:
        """Fetch pages; `find_server` names the other member that has the files of a session."""
        self._signals = signals
        self._find_server = find_server

    def serve(self, application: ASGIApp, token: str) -> None:
        """Build pages for other members with this application, which knows the token."""

        async def answer(facts: Facts) -> Facts:
            if self._find_server(facts["session"]) is not None:
                return {}
            return await _build(application, token, facts["address"])

        self._signals.answer(Topic.PAGE, answer)

    async def fetch(self, session: int, address: str) -> Response | None:
        """Fetch a page about a session's files, if another member has them.

        Raises:
            Conflict: it is too large.
        """
        if self._find_server(session) is None:
            return None
        try:
            answers = await self._signals.ask(
                Topic.PAGE, seconds=SECONDS, session=session, address=address
            )
        except TimeoutError:
            raise Conflict("the machine that has these files does not answer") from None
        page = next(filter(None, answers), None)
        if page is None:
            return None
        if "body" not in page:
            raise Conflict("this is too large to be fetched from the machine that has it")
        body = page["body"].encode("latin-1")
        return Response(body, status_code=page["status"], headers=page["headers"])


async def _build(application: ASGIApp, token: str, address: str) -> Facts:
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://member") as client,
        client.stream("GET", address, headers={"Authorization": f"Bearer {token}"}) as answer,
    ):
        body = b""
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > MOST_BYTES:
                return {"status": answer.status_code}
        headers = {name: value for name, value in answer.headers.items() if name in PASSED}
        return {
            "status": answer.status_code,
            "headers": headers,
            "body": body.decode("latin-1"),
        }


class _Fetched(Exception):
    """Ends a request with a page that another member built."""

    def __init__(self, page: Response) -> None:
        super().__init__()
        self.page = page


async def fetch_elsewhere(
    request: Request, site: SiteOf, _who: Annotated[Visitor, Depends(visitor)], session: int
) -> None:
    """Answer a request about a session's files where they are."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query = f"?{request.url.query}" if request.url.query else ""
    page = await site.fetch_page(session, raw.partition(b"?")[0].decode() + query)
    if page is not None:
        raise _Fetched(page)


def install(application: FastAPI) -> None:
    """Let an application answer with such pages."""

    async def answer(_request: Request, fetched: Exception) -> Response:
        assert isinstance(fetched, _Fetched)
        return fetched.page

    application.add_exception_handler(_Fetched, answer)
