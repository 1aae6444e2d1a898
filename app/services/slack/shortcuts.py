"""Checks where the message shortcut was used: people see it even where the agent is not."""

from __future__ import annotations

import logging
from typing import Final

from app.errors import PostError
from app.model.keys import PlaceKey
from app.services.slack import events, wording
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.messages import Event

logger = logging.getLogger(__name__)

NOT_THERE: Final = {"not_in_channel", "channel_not_found"}


class Shortcuts:
    """The uses of one app's message shortcut."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._absent: set[PlaceKey] = set()

    async def check(self, frame: Event) -> None:
        """Tell the person who used the shortcut if the agent cannot answer there."""
        payload = frame["payload"]
        if not events.is_shortcut(payload):
            return
        channel, thread = payload["channel"]["id"], events.thread_of(payload["message"])
        try:
            await self._api.read("conversations.replies", channel=channel, ts=thread, limit=1)
        except SlackRefused as error:
            if error.error in NOT_THERE:
                self._absent.add(events.place_of(channel, thread))
                await self._respond(payload)
        except PostError as error:
            logger.info("%s", error)

    def refusal(self, place: PlaceKey) -> str | None:
        """Say why the agent cannot answer where the shortcut was used just now."""
        if place not in self._absent:
            return None
        self._absent.remove(place)
        return wording.NOT_IN_CHANNEL

    async def _respond(self, payload: Event) -> None:
        try:
            words = wording.CANNOT_ANSWER.format(why=wording.NOT_IN_CHANNEL)
            await self._api.respond(str(payload.get("response_url") or ""), words)
        except PostError as error:
            logger.info("%s", error)
