"""Completes a stored frame with the names and files that it lacks, as far as Slack tells."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from app.clock import Clock
from app.errors import PostError, ServiceRefused
from app.model.inbound import Inbound
from app.retry import retry
from app.services.slack import events
from app.services.slack.api import TRANSIENT, SlackApi, SlackUncertain
from app.services.slack.auth import Colleagues, Identity
from app.services.slack.messages import Event
from app.services.slack.people import People

logger = logging.getLogger(__name__)

LOOK_UP_SECONDS: Final = 2.0
"""Time limit of one look-up for a stored message: a person waits for the agent."""
RETRY_PAUSES: Final = (1.0, 1.0)
"""Seconds between look-ups: one hiccup is no reason to refuse a message or to drop a file."""


class Completion:
    """The look-ups of one agent's app."""

    def __init__(
        self,
        api: SlackApi,
        people: People,
        reader: events.Reader,
        colleagues: Colleagues,
        clock: Clock,
        me: Callable[[], Awaitable[Identity]],
    ) -> None:
        self._api = api
        self._people = people
        self._reader = reader
        self.colleagues = colleagues
        self._clock = clock
        self._me = me

    async def complete(self, origin: events.Origin) -> Inbound | None:
        """Read a frame again, with the names and files that it lacks."""
        frame = await self._with_files(origin.frame)
        names = await self.names(events.users_in(frame))
        return self._reader.interpret(frame, replace(origin.known, names=names))

    async def names(self, users: Iterable[str]) -> dict[str, str]:
        """Look up the names of people, as far as Slack answers in time."""
        people = [user for user in users if user not in self.colleagues.agents]
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                me = await self._me()
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("cannot look up names: %s", error)
            return {}
        return await self._people.names(people, me.team)

    async def _with_files(self, frame: Event) -> Event:
        """Add a message's files and forwarded messages to its mention, which lacks them."""
        payload = frame["payload"]
        event = payload.get("event") or {}
        if event.get("type") != "app_mention":
            return frame
        try:
            message = await retry(
                self._clock, lambda: self._message(event), RETRY_PAUSES, on=TRANSIENT
            )
        except PostError as error:
            logger.warning("cannot read the files of a mention: %s", error)
            return frame
        found = {key: message[key] for key in ("files", "attachments") if key in message}
        return {**frame, "payload": {**payload, "event": {**event, **found}}}

    async def _message(self, event: Event) -> Event:
        """Read the message that a mention is in."""
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                answer = await self._api.read(
                    "conversations.replies",
                    channel=event["channel"],
                    ts=events.thread_of(event),
                    oldest=event["ts"],
                    latest=event["ts"],
                    inclusive="true",
                    limit=2,  # the first message of the thread comes with it
                )
        except TimeoutError as error:
            raise SlackUncertain("conversations.replies", "TimeoutError") from error
        return next((each for each in answer["messages"] if each["ts"] == event["ts"]), {})
