"""Verifies the deliveries of an App's webhook, and recovers those that failed.

The signature is over the raw bytes; during a rotation two secrets are valid. GitHub never repeats a
delivery by itself. Each missed one is read from the App's delivery log and accepted under its
original id, so that it is handled once however often it arrives.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

import httpx
import orjson
from gidgethub import GitHubException

from app.clock import Clock
from app.errors import DeliveryRefused, PostError, ServiceRefused
from app.model.inbound import Delivery
from app.services.common.webhooks import verify_signature
from app.services.github import wording
from app.services.github.api import GithubApi
from app.services.github.auth import Accounts, GitHubApps
from app.services.github.manifest import EVENTS
from app.services.github.names import BOT, GitHubIdentity
from app.services.github.transport import Unauthorized

logger = logging.getLogger(__name__)


_DELIVERY_ID = re.compile(rb"[A-Za-z0-9-]{8,64}")
_EVENT = re.compile(rb"[a-z_]{1,64}")
_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")

EVENT = "event"


@dataclass(frozen=True, slots=True)
class AppWebhook:
    """One App's webhook."""

    adapter: str
    app_id: str
    secrets: tuple[bytes, ...]
    """The current one first, then the previous one while it is valid."""

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Make a delivery of a request that GitHub signed for this App.

        Raises:
            DeliveryRefused: it did not, or it is for another App.
        """
        signature = headers.get(b"x-hub-signature-256", b"")
        if not _SIGNATURE.fullmatch(signature):
            raise DeliveryRefused("X-Hub-Signature-256 is missing")
        signed = verify_signature(body, signature[7:], self.secrets, "GITHUB_WEBHOOK_SECRET")
        # The signature is enough where no target is named.
        kind = headers.get(b"x-github-hook-installation-target-type") or b"integration"
        own = self.app_id.encode()
        target = headers.get(b"x-github-hook-installation-target-id") or own
        if kind != b"integration" or target != own:
            raise DeliveryRefused("this webhook belongs to another GitHub App", status=403)
        delivery_id = headers.get(b"x-github-delivery", b"")
        event = headers.get(b"x-github-event", b"")
        if not _DELIVERY_ID.fullmatch(delivery_id) or not _EVENT.fullmatch(event):
            raise DeliveryRefused("X-GitHub-Delivery or X-GitHub-Event is missing", status=400)
        if not headers.get(b"content-type", b"").startswith(b"application/json"):
            raise DeliveryRefused(
                "set the content type of the App's webhook to application/json", status=415
            )
        return Delivery(
            adapter=self.adapter,
            delivery_id=delivery_id.decode(),
            signature=signed,
            headers={EVENT: event.decode()},
            body=body,
            received_at=now,
        )


TRIED = 10_000
"""Deliveries that are read at once: some days of a busy organisation may have been missed."""


@dataclass(slots=True)
class _Event:
    """One event as the log shows it: its latest attempt first."""

    number: int
    event: str
    arrived: bool
    status: int
    at: float
    """When it was first tried."""


class DeliveryRecovery:
    """Recovers the missed events of one App."""

    def __init__(
        self,
        agent: str,
        hook: AppWebhook,
        api: GithubApi,
        directory: GitHubApps,
        clock: Clock,
        accounts: Accounts,
        remember: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._agent = agent
        self._hook = hook
        self._api = api
        self._directory = directory
        self._clock = clock
        self._accounts = accounts
        self._remember = remember
        self.trouble = wording.NOT_KNOWN_YET

    async def introduce(self) -> None:
        """Look up the App, and whom it works for.

        Raises:
            ServiceRefused: GitHub does not know the App, or not by this key.
        """
        try:
            app = await self._api.app()
            if app is None:
                raise self._unknown()
            # Until the accounts that the App works for are known, no event is read.
            installations = self._api.installations
            installations.add_owner(app)
            await self._accounts.resolve(self._api.account_id)
            found = map(self._accounts.number_of, installations.logins)
            installations.complete(number for number in found if number is not None)
        except Unauthorized as error:
            raise self._unknown() from error
        except (PostError, GitHubException, httpx.HTTPError) as error:
            self.trouble = wording.NOT_LOOKED_UP.format(error=error)
            raise
        login = f"{app['slug']}{BOT}"
        self._directory.introduce(GitHubIdentity(self._agent, login, await self._bot_id(login)))
        if self._remember is not None:
            await self._remember(login)
        logger.info("%s is @%s on GitHub", self._agent, app["slug"])
        self.trouble = ""

    def _unknown(self) -> ServiceRefused:
        self._directory.refuse(self._agent)
        return ServiceRefused(self._hook.adapter, wording.UNKNOWN_APP, wording.CHECK_KEY)

    async def _bot_id(self, login: str) -> int | None:
        """Find the bot's number; without it our own comments are recognised by their login."""
        try:
            return await self._api.account_id(login)
        except PostError as error:
            logger.warning("cannot look up the number of %s: %s", login, error)
            return None

    async def find(self, since: float) -> AsyncGenerator[Delivery, None]:
        """Read what GitHub could not deliver since a time, oldest first.

        Raises:
            PostError: GitHub does not say.
        """
        events = await self._log(since)
        for guid, event in reversed(events.items()):
            if event.arrived or event.event not in EVENTS:
                continue
            found = await self._api.as_app(f"/app/hook/deliveries/{event.number}")
            payload = found and found.get("request", {}).get("payload")
            if payload:
                headers, now = {EVENT: event.event}, self._clock.now()
                yield Delivery(
                    self._hook.adapter,
                    guid,
                    None,
                    headers,
                    orjson.dumps(payload),
                    now,
                    sent_at=event.at,
                )
        latest = next(iter(events.values()), None)
        self.trouble = _trouble(latest) if latest is not None else ""

    async def _log(self, since: float) -> dict[str, _Event]:
        """Read what GitHub tried to deliver, by event, the newest first."""
        events: dict[str, _Event] = {}
        read = 0
        async with aclosing(self._api.deliveries()) as log:
            async for tried in log:
                at = datetime.fromisoformat(tried["delivered_at"]).timestamp()
                if at < since:
                    break
                read += 1
                if read > TRIED:
                    logger.warning("read only the last %d deliveries of GitHub's log", TRIED)
                    break
                status = int(tried["status_code"])
                arrived = 200 <= status < 300
                new = _Event(int(tried["id"]), tried["event"], arrived, status, at)
                known = events.setdefault(tried["guid"], new)
                known.arrived = known.arrived or arrived
                known.at = at
        return events


def _trouble(latest: _Event) -> str:
    """Say what the outcome of the latest delivery means for those to come."""
    if latest.arrived:
        return ""
    match latest.status:
        case 401:
            return wording.OTHER_SECRET
        case 403 | 404 | 405 | 415:
            return wording.WRONG_ADDRESS.format(status=latest.status)
        case _:
            return wording.NOT_DELIVERED.format(status=latest.status or wording.NO_CONNECTION)
