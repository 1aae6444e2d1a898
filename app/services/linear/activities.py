"""Puts activities into sessions: each once, however often it is tried, and in short if need be."""

from __future__ import annotations

import logging
from typing import Any

from app.services.linear.api import LinearApi, LinearFailed, LinearRefused
from app.services.linear.render import Activity, activity_id, shortened

logger = logging.getLogger(__name__)


class Activities:
    """What one agent says and does, as Linear keeps it."""

    def __init__(self, name: str, api: LinearApi) -> None:
        self._name = name
        self._api = api

    async def create(self, session: str, marker: str, activity: Activity) -> None:
        """Create an activity of a post, with less in it if Linear does not take it as it is.

        Raises:
            PostDelayed: not now.
            LinearRefused: never.
            ServiceRefused: not with these credentials.
        """
        try:
            await self._create(session, marker, activity)
        except LinearRefused as error:
            shorter = shortened(activity)
            if error.missing or error.forbidden or shorter is None:
                raise
            logger.warning("%s says less in %s: %s", self._name, session, error)
            await self._create(session, marker, shorter)

    async def exists(self, name: str) -> bool:
        """Tell whether there is an activity of that id.

        Raises:
            PostDelayed: not now.
            LinearRefused: Linear does not tell.
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
        """Create an activity; one that is there already is what was wanted."""
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
            # An ephemeral one may have been there and be gone: it is not worth a failure.
            if error.missing or not (activity.ephemeral or await self.exists(wanted["id"])):
                raise
