"""Decides who may make an agent act: the platform's rule, plus or instead the operator's lists.

It fails closed: a platform that cannot be asked means no, or not yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass

from app.core.adapters import Adapter
from app.core.keys import PlaceKey
from app.core.types import Speaker
from app.errors import SpeakerUnknown

logger = logging.getLogger(__name__)

PLATFORM_SECONDS = 10.0
"""How long a platform may take to say who somebody is: its slowest deadline for us."""
UNCHECKED = "it could not be checked whether you may use this agent here; try again later"

UNCHECKED = "it could not be checked whether you may use this agent here; try again later"


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's lists: `slack:U1`, `github:octocat`; bots by their platform id."""

    users: Collection[str] = ()
    only_users: bool = False
    bots: Collection[str] = ()

    async def refusal(self, adapter: Adapter, speaker: Speaker, place: PlaceKey) -> str | None:
        """Say why somebody may not, or None if they may.

        Raises:
            SpeakerUnknown: it cannot be told now, and nobody could be told anything.
        """
        name = f"{place.service}:{speaker.id}"
        if speaker.kind != "person":
            return None if name in self.bots else "bots are heard only when ALLOWED_BOTS names them"
        if name in self.users:
            return None
        if self.only_users:
            return "only the people named in ALLOWED_USERS may use this agent"
        try:
            async with asyncio.timeout(PLATFORM_SECONDS):
                return await adapter.refusal(speaker, place)
        except SpeakerUnknown:
            raise
        except Exception:
            logger.exception("%s cannot tell who may trigger", adapter.service_name)
            return UNCHECKED
