"""Finds out who the App is, then takes in what GitHub could not deliver.

GitHub never repeats a delivery by itself. Each missed one is read from the App's own delivery log
and taken in under the id it had, so that it is handled once however often it arrives.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

import httpx
import orjson
from gidgethub import GitHubException

from app.core.inbound import Delivery
from app.core.ports import Clock
from app.errors import PostError, ServiceRefused
from app.services.github.api import GithubApi, Unauthorized
from app.services.github.directory import Directory
from app.services.github.manifest import EVENTS
from app.services.github.mentions import BOT, Identity
from app.services.github.names import SERVICE
from app.services.github.webhook import EVENT, Hook

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 180.0
"""How long what never arrived may wait: GitHub allows 5,000 requests an hour."""
REACH_SECONDS = 72 * 3600.0
"""How far back GitHub's log goes."""
OVERLAP_SECONDS = 3600.0
"""How far each look goes back behind the one before: a delivery is tried late at times."""
TRIED = 1_000
"""Deliveries that one look reads at most: ten pages."""
TRIED_AT_START = 10_000
"""What the first look reads at most: some days of a busy organisation may have been missed."""

Take = Callable[[Delivery], Awaitable[None]]


@dataclass(slots=True)
class _Event:
    """One event as the log shows it: its latest attempt first."""

    number: int
    event: str
    arrived: bool
    status: int


class Sweep:
    """Looks after the events of one App."""

    def __init__(
        self, agent: str, hook: Hook, api: GithubApi, directory: Directory, clock: Clock
    ) -> None:
        self._agent = agent
        self._hook = hook
        self._api = api
        self._directory = directory
        self._clock = clock
        self._looked = 0.0
        self._taken: set[str] = set()
        self.trouble = "it is not known yet who this App is on GitHub"

    async def run(self, take: Take) -> None:
        """Introduce the App, then look for missed deliveries, now and every few minutes.

        Raises:
            ServiceRefused: GitHub does not know the App, or not by this key.
        """
        await self._introduce()
        while True:
            await self._look(take)
            await self._clock.sleep(PAUSE_SECONDS)

    async def _introduce(self) -> None:
        try:
            app = await self._api.app()
        except Unauthorized as error:
            raise self._unknown() from error
        except (PostError, GitHubException, httpx.HTTPError) as error:
            self.trouble = f"GitHub cannot be asked who this App is: {error}"
            raise
        if app is None:
            raise self._unknown()
        login = f"{app['slug']}{BOT}"
        self._directory.introduce(Identity(self._agent, login, await self._bot_id(login)))
        logger.info("%s is @%s on GitHub", self._agent, app["slug"])
        self.trouble = ""

    def _unknown(self) -> ServiceRefused:
        return ServiceRefused(
            self._hook.adapter,
            "GitHub does not know the App by this key",
            "Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY.",
        )

    async def _bot_id(self, login: str) -> int | None:
        """Find the bot's number; without it our own comments are known by their login."""
        try:
            return await self._api.bot_id(login)
        except PostError as error:
            logger.warning("the number of %s is not known: %s", login, error)
            return None

    async def _look(self, take: Take) -> None:
        began = self._clock.now()
        events = await self._log(max(began - REACH_SECONDS, self._looked - OVERLAP_SECONDS))
        missed = {
            guid: event
            for guid, event in events.items()
            if not event.arrived and event.event in EVENTS and guid not in self._taken
        }
        for guid, event in reversed(missed.items()):
            await self._take(guid, event, take)
        self._looked = began
        latest = next(iter(events.values()), None)
        self.trouble = _trouble(latest) if latest is not None else ""

    async def _log(self, since: float) -> dict[str, _Event]:
        """Read what GitHub tried to deliver, by event, the newest first."""
        events: dict[str, _Event] = {}
        read, most = 0, TRIED if self._looked else TRIED_AT_START
        async with aclosing(self._api.deliveries()) as log:
            async for tried in log:
                if _time(tried["delivered_at"]) < since:
                    break
                read += 1
                if read > most:
                    logger.warning("of GitHub's log only the last %d deliveries are read", most)
                    break
                status = int(tried["status_code"])
                arrived = 200 <= status < 300
                new = _Event(int(tried["id"]), tried["event"], arrived, status)
                known = events.setdefault(tried["guid"], new)
                known.arrived = known.arrived or arrived
        return events

    async def _take(self, guid: str, event: _Event, take: Take) -> None:
        found = await self._api.as_app(f"/app/hook/deliveries/{event.number}")
        payload = found and found.get("request", {}).get("payload")
        if payload:
            logger.info("%s takes in a missed %s", self._hook.adapter, event.event)
            body = orjson.dumps(payload)
            headers = {EVENT: event.event}
            now = self._clock.now()
            await take(Delivery(self._hook.adapter, guid, None, headers, body, now))
        self._taken.add(guid)


def _trouble(latest: _Event) -> str:
    """Say what the outcome of the latest delivery means for those to come."""
    if latest.arrived:
        return ""
    match latest.status:
        case 401:
            return "GitHub signs with another secret: compare GITHUB_WEBHOOK_SECRET"
        case 403 | 404 | 405 | 415:
            return (
                f"the App's webhook goes to the wrong address (answered {latest.status}): set it "
                f"to BRIDGE_BASE_URL + /webhooks/{SERVICE}/<agent>, content type application/json"
            )
        case _:
            return (
                f"GitHub's last delivery did not arrive ({latest.status or 'no connection'}): "
                "check that GitHub can reach BRIDGE_BASE_URL"
            )


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
