"""Serves the browser steps that install an agent's application on a platform."""

from __future__ import annotations

import logging
from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import RedirectResponse, Response

from app.errors import PostError, ServiceRefused
from app.model.keys import adapter_name
from app.server.installations import StateInvalid
from app.server.login import Visitor, visitor
from app.server.problems import plain_page
from app.server.site import SiteOf

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/install", include_in_schema=False)
Who = Annotated[Visitor, Depends(visitor)]


@router.get("/{service}/{agent}")
async def leave(site: SiteOf, who: Who, service: str, agent: str) -> Response:
    """Redirect an admin to the platform's consent page."""
    address = await site.installs.begin(adapter_name(service, agent), who.login)
    if address is None:
        raise HTTPException(404, f"{agent} has nothing to install on {service}")
    return RedirectResponse(address, 303, headers={"Cache-Control": "no-store"})


@router.get("/{service}/{agent}/callback")
async def come_back(
    site: SiteOf,
    who: Who,
    service: str,
    agent: str,
    *,
    state: str = "",
    code: str = "",
    error: str = "",
) -> Response:
    """Finish the installation with the code from the platform."""
    name, again = adapter_name(service, agent), f"/install/{service}/{agent}"
    try:
        if error or not code:
            await site.installs.give_up(name, who.login, state=state)
            return _not_installed(again, "Consent was not given.")
        found = await site.installs.finish(name, who.login, state=state, code=code)
    except StateInvalid:
        words = "This address works once, within 15 minutes, for the person who started."
        return _not_installed(again, words)
    except (ServiceRefused, PostError) as refused:
        # The code is used up and its tokens may be lost: a retry needs a new code.
        logger.warning("cannot install %s: %s", name, refused)
        return _not_installed(again, str(refused))
    logger.info("installed %s: it is %s", name, found)
    words = f'<p>It is {escape(found)}. <a href="/">Open the page</a>.</p>'
    return plain_page(200, f"{escape(agent)} is installed", words)


def _not_installed(again: str, reason: str) -> Response:
    words = f'<p>{escape(reason)}</p><p><a href="{escape(again)}">Try again</a>.</p>'
    return plain_page(400, "Installation failed", words)
