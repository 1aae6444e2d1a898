"""Installing an agent's application on a platform, as a person goes through it in a browser."""

from __future__ import annotations

import logging
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import RedirectResponse, Response

from app.core.keys import adapter_name
from app.errors import PostError, ServiceRefused
from app.server import doorstep
from app.server.installations import StateOfNoUse
from app.server.login import Visitor, visitor
from app.server.parts import PartsOf

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/install", include_in_schema=False)
Who = Annotated[Visitor, Depends(visitor)]


@router.get("/{service}/{agent}")
async def leave(parts: PartsOf, who: Who, service: str, agent: str) -> Response:
    """Send an admin to where the platform asks for consent."""
    address = await parts.installs.begin(adapter_name(service, agent), who.login)
    if address is None:
        raise HTTPException(404, f"there is nothing to install for {agent} on {service}")
    return RedirectResponse(address, 303, headers={"Cache-Control": "no-store"})


@router.get("/{service}/{agent}/callback")
async def come_back(
    parts: PartsOf,
    who: Who,
    service: str,
    agent: str,
    *,
    state: str = "",
    code: str = "",
    error: str = "",
) -> Response:
    """Take what the admin brings back from there."""
    name, again = adapter_name(service, agent), f"/install/{service}/{agent}"
    try:
        if error or not code:
            await parts.installs.give_up(name, who.login, state=state)
            return doorstep.not_installed(again, "Nobody consented.")
        found = await parts.installs.finish(name, who.login, state=state, code=code)
    except StateOfNoUse:
        words = "This address works once, for whoever began the installation, within 15 minutes."
        return doorstep.not_installed(again, words)
    except (ServiceRefused, PostError) as refused:
        # The code is used up, and what it was exchanged for may be lost: it takes another one.
        logger.warning("%s could not be installed: %s", name, refused)
        return doorstep.not_installed(again, str(refused))
    logger.info("%s was installed: it is %s", name, found)
    return doorstep.installed(agent, found)
