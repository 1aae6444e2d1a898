"""Decides who may make an agent act: the platform's rule and the operator's lists.

It fails closed: a platform that cannot be asked means no, or not yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass

from app.config.settings import Settings
from app.core.adapters import Adapter
from app.errors import SpeakerUnknown
from app.model import wording
from app.model.keys import PlaceKey
from app.model.types import Speaker

logger = logging.getLogger(__name__)

PLATFORM_SECONDS = 10.0
"""How long a platform may take to identify a person: its slowest deadline for us."""


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's lists, each entry as `service:id`; bots by their platform id."""

    users: Collection[str] = ()
    only_users: bool = False
    bots: Collection[str] = ()

    @classmethod
    def of(cls, settings: Settings) -> Access:
        """Read whom the operator allows or refuses."""
        return cls(
            users=frozenset(f"{who.service}:{who.id}" for who in settings.allowed_users),
            only_users=settings.allowed_users_only,
            bots=frozenset(f"{who.service}:{who.id}" for who in settings.allowed_bots),
        )

    async def refusal(self, adapter: Adapter, speaker: Speaker, place: PlaceKey) -> str | None:
        """Say why a speaker may not trigger the agent; None if they may.

        Raises:
            SpeakerUnknown: it cannot be checked now, and the speaker cannot be told either.
        """
        if speaker.kind != "person":
            listed = f"{place.service}:{speaker.id}" in self.bots
            return None if listed else wording.BOTS_LISTED
        if any(f"{place.service}:{name}" in self.users for name in adapter.listed_names(speaker)):
            return None
        if self.only_users:
            return wording.USERS_LISTED
        try:
            async with asyncio.timeout(PLATFORM_SECONDS):
                return await adapter.refusal(speaker, place)
        except SpeakerUnknown:
            raise
        except Exception:
            logger.exception("%s: access check failed", adapter.service_name)
            return wording.UNCHECKED
