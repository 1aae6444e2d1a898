"""Calls Slack as one app, and keeps its calls within Slack's limits.

Slack counts the calls of one app to one method in one workspace, per minute. Progress uses a part
of that only, at an even rate, so that a final answer never waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from app.clock import Clock, SystemClock
from app.core.files.attachments import PlatformFileRefused
from app.errors import PostDelayed, PostError, PostRejected
from app.services.common.webhooks import read_pages
from app.services.slack import wording
from app.services.slack.text import is_canvas
from app.vault import Vault

logger = logging.getLogger(__name__)

MINUTE: Final = 60.0
ONE: Final = 0.999
"""A whole call: who has waited for one must not miss it by a rounding error."""


@dataclass(frozen=True, slots=True)
class Share:
    """What progress may use of a method: some calls at once, then so many per minute."""

    burst: float
    per_minute: float


SHARES: Final = {
    "agents.sessions.setStatus": Share(20, 20),  # of 50
    "chat.appendStream": Share(20, 50),  # of 100
    "chat.startStream": Share(10, 10),  # of 20: no answer starts a stream
    "chat.update": Share(10, 25),  # of 50
    "conversations.history": Share(10, 35),  # of 50
    "conversations.replies": Share(10, 30),  # of 50
    "reactions.add": Share(10, 20),  # of 50
    "users.conversations": Share(10, 10),  # of 50
}
"""The rest of what Slack allows in any minute is for answers, and for what people wait for."""


@dataclass(slots=True)
class _Bucket:
    """The calls that are left to progress, as they were at a time."""

    left: float
    at: float


class Limits:
    """The buckets of one app."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._closed: dict[str, float] = {}
        """Until when Slack takes no call of a method."""

    def take(self, method: str, *, yields: bool) -> None:
        """Count a call, if it can be made now.

        Raises:
            PostDelayed: Slack said to wait, or the rest is for answers.
        """
        now = self._clock.monotonic()
        wait = self._closed.get(method, now) - now
        if wait <= 0 and method in SHARES:
            wait = self._count(method, SHARES[method], now, yields=yields)
        if wait > 0:
            raise PostDelayed(f"Slack limits {method}", retry_after=wait)

    def close(self, method: str, seconds: float) -> None:
        """Make no call of a method for some time, as Slack demands."""
        self._closed[method] = self._clock.monotonic() + seconds

    def _count(self, method: str, share: Share, now: float, *, yields: bool) -> float:
        """Count a call; returns how long it has to wait if there is no room for it."""
        bucket = self._buckets.setdefault(method, _Bucket(share.burst, now))
        earned = (now - bucket.at) * share.per_minute / MINUTE
        bucket.left, bucket.at = min(share.burst, bucket.left + earned), now
        if yields and bucket.left < ONE:
            return (1 - bucket.left) * MINUTE / share.per_minute
        # Many answers make progress wait, but for a minute at most.
        bucket.left = max(bucket.left - 1, 1 - share.per_minute)
        return 0.0


SDK_LOGGER: Final = logging.getLogger(f"{__name__}.sdk")
SDK_LOGGER.setLevel(logging.INFO)
"""Set explicitly: without a level the SDK logs every message it sends and receives."""

UPLOAD_SECONDS: Final = 50
"""Time limit for uploading one file: less than the outbox gives one call."""
CALL_SECONDS: Final = 30
"""Time limit of one call: the default of Slack's own SDK."""
BUSY_SECONDS: Final = 5.0
"""How long to wait when Slack limits a call without saying for how long."""
PASSING: Final = {
    "external_channel_migrating",
    "fatal_error",
    "internal_error",
    "messaging_processing_failed",
    "org_login_required",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
    "update_failed",
}
"""Errors of Slack itself, or of a workspace that is being moved: the call may have worked."""
LIMITED: Final = {"rate_limited", "ratelimited"}
HTML: Final = "text/html"
HOME: Final = "slack.com"
TOO_MANY_REQUESTS: Final = 429
SERVER_ERROR: Final = 500
PAGE: Final = 200
PAGES: Final = 5
"""Maximum pages of a thread: a thousand messages."""
CHUNK_BYTES: Final = 256 * 1024


class SlackRefused(PostRejected):
    """Slack said no, and will say so again."""

    def __init__(self, method: str, error: str) -> None:
        self.error = error
        super().__init__(wording.REFUSED.format(method=method, error=error))


class SlackUncertain(PostError):
    """It is not known whether Slack carried out the call."""

    def __init__(self, method: str, cause: str) -> None:
        super().__init__(wording.NOT_CONFIRMED.format(method=method, cause=cause))


TRANSIENT: Final = (PostDelayed, SlackUncertain)
"""Errors after which the same call may work."""
MISSED_PAUSES: Final = (5.0, 20.0, 60.0)
"""Seconds before something that could not be read is read again."""


class SlackApi:
    """The Web API, called as one app."""

    def __init__(
        self,
        base_url: str,
        token: str,
        vault: Vault | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._limits = Limits(self._clock)
        self._base_url = base_url
        self._token = token
        self._vault = vault or Vault()
        self._session: aiohttp.ClientSession | None = None
        self._client: AsyncWebClient | None = None

    @property
    def client(self) -> AsyncWebClient:
        """The SDK's client, on one session for all calls; created when the loop runs."""
        if self._client is None:
            timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
            self._session = aiohttp.ClientSession(timeout=timeout)
            self._client = AsyncWebClient(
                token=self._token,
                base_url=self._base_url,
                session=self._session,
                logger=SDK_LOGGER,
                retry_handlers=[],
            )
            if bypasses_proxy(self._base_url):
                self._client.proxy = None
        return self._client

    async def call(self, method: str, *, yields: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a method that changes something; one that `yields` leaves room for others.

        Raises:
            PostDelayed: not now.
            SlackRefused: never.
            SlackUncertain: there was no clear answer.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        json = self._vault.redact_json(given)
        return await self._call(method, yields=yields, json=json)

    async def read(self, method: str, *, yields: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a method that only reads; raises what `call` does."""
        given = {name: str(value) for name, value in arguments.items() if value is not None}
        return await self._call(method, yields=yields, http_verb="GET", params=given)

    async def _call(self, method: str, *, yields: bool = False, **how: Any) -> dict[str, Any]:
        self._limits.take(method, yields=yields)
        try:
            response = await self.client.api_call(method, **how)
        except SlackApiError as error:
            failed = failure(method, error)
            if isinstance(failed, PostDelayed):
                self._limits.close(method, failed.retry_after or BUSY_SECONDS)
            raise failed from error
        except (aiohttp.ClientError, SlackClientError, TimeoutError) as error:
            raise SlackUncertain(method, type(error).__name__) from error
        data = dict(response.data) if isinstance(response.data, dict) else {}
        data["scopes"] = response.headers.get("x-oauth-scopes", "")
        return data

    async def replies(
        self, channel: str, thread: str, *, yields: bool = False, **query: str
    ) -> list[dict[str, Any]]:
        """Read a thread, oldest message first; raises what `call` does."""

        async def read(cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
            given = {"channel": channel, "ts": thread, "limit": PAGE, "cursor": cursor, **query}
            answer = await self.read("conversations.replies", yields=yields, **given)
            return answer["messages"], (answer.get("response_metadata") or {}).get("next_cursor")

        pages = read_pages(read, pages=PAGES, what=f"the thread {channel}:{thread}")
        return [message async for message in pages]

    async def marked(self, channel: str, thread: str) -> list[dict[str, Any]]:
        """Read a thread, or without one the latest of a channel, each message with its mark.

        Raises what `call` does.
        """
        if thread:
            return await self.replies(channel, thread, include_all_metadata="true")
        given: dict[str, Any] = {"channel": channel, "limit": PAGE, "include_all_metadata": "true"}
        found: list[dict[str, Any]] = (await self.read("conversations.history", **given))[
            "messages"
        ]
        return found

    async def read_in_time(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Read something for which no one waits, as slowly as it takes.

        Raises:
            SlackRefused: never.
            SlackUncertain: Slack gives no clear answer, again and again.
        """
        pauses = iter(MISSED_PAUSES)
        while True:
            try:
                return await self.read(method, yields=True, **arguments)
            except PostDelayed as error:
                await self._clock.sleep(error.retry_after or BUSY_SECONDS)
            except SlackUncertain:
                if (pause := next(pauses, None)) is None:
                    raise
                await self._clock.sleep(pause)

    async def download(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """Read a file; raises what `call` does.

        Raises:
            FileRefused: Slack does not store it, or answers with something else.
        """
        info = (await self.read("files.info", file=file_id))["file"]
        url = info.get("url_private_download") or info.get("url_private") or ""
        if not is_slack_address(url, self._base_url):
            # The host of an external file chooses its address, and would receive the token.
            raise PlatformFileRefused(wording.STORED_OUTSIDE.format(url=url))
        session, proxy = self._reach(url)
        headers = {"Authorization": f"Bearer {self._token}"}
        try:
            async with session.get(url, headers=headers, proxy=proxy) as answer:
                if not answer.ok:
                    raise PlatformFileRefused(wording.ANSWERED.format(status=answer.status))
                if answer.content_type == HTML and (answer.history or not is_html(info)):
                    # Slack sends those who may not read the file to its login page.
                    raise PlatformFileRefused(wording.NOT_READABLE)
                async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                    yield chunk
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUncertain("download", type(error).__name__) from error

    async def put(self, name: str, content: bytes) -> str:
        """Upload a file to Slack without sharing it; returns its id, raises what `call` does.

        Raises:
            FileRefused: Slack rejected it.
        """
        given = {"filename": name, "length": len(content)}
        place = await self._call("files.getUploadURLExternal", data=given)
        url, timeout = place["upload_url"], aiohttp.ClientTimeout(total=UPLOAD_SECONDS)
        session, proxy = self._reach(url)
        try:
            async with session.post(url, data=content, proxy=proxy, timeout=timeout) as answer:
                if not answer.ok and answer.status < SERVER_ERROR:
                    raise PlatformFileRefused(wording.ANSWERED.format(status=answer.status))
                answer.raise_for_status()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUncertain("upload", type(error).__name__) from error
        return str(place["file_id"])

    async def share(
        self, files: Mapping[str, str], *, channel: str, thread: str, comment: str | None = None
    ) -> None:
        """Share files, given as titles by id, in one message; raises what `call` does."""
        await self.call(
            "files.completeUploadExternal",
            files=[{"id": number, "title": title} for number, title in files.items()],
            channel_id=channel,
            thread_ts=thread,
            initial_comment=comment,
        )

    async def respond(self, url: str, words: str) -> None:
        """Answer an interaction where the app may not be: only the person who acted sees it.

        Nothing depends on it.
        """
        if not is_slack_address(url, self._base_url):
            return
        session, proxy = self._reach(url)
        json = {"response_type": "ephemeral", "replace_original": False, "text": words}
        try:
            async with session.post(url, json=json, proxy=proxy) as answer:
                answer.raise_for_status()
        except (aiohttp.ClientError, TimeoutError) as error:
            logger.info("cannot answer an interaction: %s", type(error).__name__)

    def _reach(self, url: str) -> tuple[aiohttp.ClientSession, str | None]:
        """Return the session of the client, and the proxy for an address."""
        client = self.client  # opens the session
        assert self._session is not None
        return self._session, None if bypasses_proxy(url) else client.proxy

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
        self._session = self._client = None


def failure(method: str, error: SlackApiError) -> PostError:
    """Convert an SDK error to one that tells the caller whether to retry."""
    response = error.response
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 0)
    data = getattr(response, "data", None)
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == TOO_MANY_REQUESTS or code in LIMITED:
        wait = str(response.headers.get("Retry-After", ""))
        seconds = float(wait) if wait.isdigit() else BUSY_SECONDS
        words = wording.RATE_LIMITED.format(method=method)
        return PostDelayed(words, retry_after=max(seconds, 1.0))
    if status >= SERVER_ERROR or code in PASSING or not code:
        return SlackUncertain(method, code or f"status {status}")
    return SlackRefused(method, code)


def is_html(file: Mapping[str, Any]) -> bool:
    """Tell whether Slack serves a file as HTML because it is a page or a canvas."""
    return file.get("mimetype") == HTML or is_canvas(file)


def is_slack_address(url: str, base_url: str) -> bool:
    """Tell whether an address belongs to Slack, or to the host of its API."""
    parts, base = urlsplit(url), urlsplit(base_url)
    host = parts.hostname or ""
    if parts.scheme == base.scheme and host == base.hostname:
        return True
    homes = {HOME, (base.hostname or HOME).removeprefix("www.")}
    return parts.scheme == "https" and any(f".{host}".endswith(f".{home}") for home in homes)


def bypasses_proxy(url: str) -> bool:
    """Tell whether an address is called directly, even if a proxy is set."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or bool(proxy_bypass(host)):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
