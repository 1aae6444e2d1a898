"""Holds what the HTTP server of one bridge has besides its runtime, and finds both for routes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response

from app.core.runtime import Runtime
from app.errors import StoreUnavailable
from app.metrics import Check, Vital
from app.model.inbound import Accepted, Delivery
from app.server.installations import PendingInstallations
from app.server.login_links import LoginLinks
from app.server.rights import Rights
from app.server.tokens import Tokens


async def _find_nothing(_session: int, _address: str) -> None:
    """Have every page built here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What one bridge serves over HTTP, apart from its runtime."""

    links: LoginLinks
    tokens: Tokens
    admin_token: str
    rights: Rights
    """The table of roles and routes."""
    admins: Callable[[], Awaitable[Sequence[str]]]
    """Names those who can give roles."""
    installs: PendingInstallations
    ready: Callable[[], Awaitable[Sequence[Check]]]
    """Checks each part of the bridge."""
    vitals: Callable[[], Awaitable[Sequence[Vital]]]
    """Measures how the bridge is now."""
    fetch_page: Callable[[int, str], Awaitable[Response | None]] = _find_nothing
    """Fetches a page about the files of a session from the member that has them."""


def runtime_of(request: Request) -> Runtime:
    """Find the runtime of the bridge that serves a request."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def site_of(request: Request) -> Site:
    """Find what the bridge that serves a request has for its HTTP server."""
    site: Site = request.app.state.site
    return site


RuntimeOf = Annotated[Runtime, Depends(runtime_of)]
SiteOf = Annotated[Site, Depends(site_of)]


SETTLE_SECONDS = 30.0
"""How long a caller waits for the outcome of a message; the message is stored in any case."""


async def settle(
    runtime: Runtime,
    delivery: Delivery,
    *,
    later: str = "the message is stored and will be handled later",
) -> Accepted:
    """Send a message through the same intake as messages from platforms; returns its outcome.

    Raises:
        StoreUnavailable: it takes too long; `later` says what is stored.
    """
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            return await runtime.intake.settle(delivery)
    except TimeoutError:
        raise StoreUnavailable(later) from None
