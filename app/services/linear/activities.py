"""Creates activities in Linear sessions: each once despite retries, shortened if need be."""

from __future__ import annotations

import logging
from typing import Any

from app.services.linear.api import LinearApi, LinearFailed, LinearRefused
from app.services.linear.render import Activity, activity_id, shorten

logger = logging.getLogger(__name__)


class Activities:
    """The activities of one agent."""

    def __init__(self, name: str, api: LinearApi) -> None:
        self._name = name
        self._api = api

    async def create(self, session: str, marker: str, activity: Activity) -> None:
        """Create an activity of a post, shortened if Linear rejects it as it is.

        Raises:
            PostDelayed: not now.
            LinearRefused: never.
            ServiceRefused: not with these credentials.
        """
        try:
            await self._create(session, marker, activity)
        except LinearRefused as error:
            shorter = shorten(activity)
            if error.missing or error.forbidden or shorter is None:
                raise
            logger.warning("%s shortens its text in %s: %s", self._name, session, error)
            await self._create(session, marker, shorter)

    async def exists(self, name: str) -> bool:
        """Tell whether an activity with this id exists.

        Raises:
            PostDelayed: not now.
            LinearRefused: Linear does not say.
            ServiceRefused: not with these credentials.
        """
        try:
            await self._api.call("activity", id=name)
        except LinearRefused as error:
            if error.missing:
                return False
            raise
        return True

    async def _create(self, session: str, marker: str, activity: Activity) -> None:
        """Create an activity; one that already exists counts as created."""
        wanted: dict[str, Any] = {
            "id": activity_id(marker, activity.name),
            "agentSessionId": session,
            "content": dict(activity.content),
            "ephemeral": activity.ephemeral,
        }
        if activity.signal is not None:
            wanted["signal"], wanted["signalMetadata"] = activity.signal
        try:
            await self._api.call("create_activity", input=wanted)
        except LinearFailed:
            if not await self.exists(wanted["id"]):
                raise
        except LinearRefused as error:
            # An ephemeral one may have existed and be gone: it is not worth a failure.
            if error.missing or not (activity.ephemeral or await self.exists(wanted["id"])):
                raise
