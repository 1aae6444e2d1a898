"""Calls Slack's Web API and says plainly what came of it: done, not now, never, or nobody knows.

Nothing is tried again here: waiting and retrying is the outbox's, the SDK's own handlers are off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from app.errors import PostDelayed, PostError, PostRejected

SDK_LOGGER: Final = logging.getLogger(f"{__name__}.sdk")
SDK_LOGGER.setLevel(logging.INFO)
"""The SDK writes everything that is said into its log when its logger has no level of its own."""

UPLOAD_SECONDS: Final = 50
"""How long one file may take on its way up: less than the outbox gives to one call."""
CALL_SECONDS: Final = 30
"""How long one call may take: what Slack's own SDK allows."""
BUSY_SECONDS: Final = 5.0
"""How long to wait when Slack says not now, but not until when."""
PASSING: Final = {
    "fatal_error",
    "internal_error",
    "org_login_required",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
}
"""Errors of Slack itself, or of a workspace that is on the move: it may be done or not."""
HOME: Final = "slack.com"
TOO_MANY_REQUESTS: Final = 429
SERVER_ERROR: Final = 500
PIECE_BYTES: Final = 256 * 1024


class SlackRefused(PostRejected):
    """Slack said no, and will say so again."""

    def __init__(self, method: str, error: str) -> None:
        self.error = error
        super().__init__(f"Slack refuses {method}: {error}")


class SlackUncertain(PostError):
    """Nobody knows whether Slack did what it was asked for."""

    def __init__(self, method: str, cause: str) -> None:
        super().__init__(f"Slack did not say whether {method} was done: {cause}")


class FileRefused(PostError):
    """A file cannot be had."""


class SlackApi:
    """One app's way to call Slack."""

    def __init__(self, base_url: str, token: str) -> None:
        self._base_url = base_url
        self._token = token
        self._session: aiohttp.ClientSession | None = None
        self._client: AsyncWebClient | None = None

    @property
    def client(self) -> AsyncWebClient:
        """The SDK's client, on one session for all calls; made when the loop runs."""
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

    async def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Have Slack do something.

        Raises:
            PostDelayed: not now.
            SlackRefused: never.
            SlackUncertain: there was no clear answer.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._call(method, json=given)

    async def read(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Ask Slack something; raises what `call` does."""
        given = {name: str(value) for name, value in arguments.items() if value is not None}
        return await self._call(method, http_verb="GET", params=given)

    async def _call(self, method: str, **how: Any) -> dict[str, Any]:
        try:
            response = await self.client.api_call(method, **how)
        except SlackApiError as error:
            raise failure(method, error) from error
        except (aiohttp.ClientError, SlackClientError, TimeoutError) as error:
            raise SlackUncertain(method, type(error).__name__) from error
        data = dict(response.data) if isinstance(response.data, dict) else {}
        data["scopes"] = response.headers.get("x-oauth-scopes", "")
        return data

    async def download(self, url: str, path: Path, *, most: int) -> None:
        """Fetch a private file into a path.

        Raises:
            FileRefused: it is not kept by Slack, it is too large, or what came is not the file.
            SlackUncertain: there was no answer.
        """
        if not is_slacks(url, self._base_url):
            # Whoever keeps a file elsewhere chooses its address, and would be told the token.
            raise FileRefused(f"it is kept outside of Slack, at {url}")
        client = self.client
        assert self._session is not None
        headers = {"Authorization": f"Bearer {self._token}"}
        proxy = None if bypasses_proxy(url) else client.proxy
        try:
            async with self._session.get(url, headers=headers, proxy=proxy) as answer:
                if not answer.ok:
                    raise FileRefused(f"Slack answered {answer.status}")
                if answer.content_type == "text/html":
                    # Slack shows its log-in page to whoever may not read the file.
                    raise FileRefused("Slack does not let the app read it; it needs files:read")
                await _save(answer, path, most)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUncertain("download", type(error).__name__) from error

    async def put(self, name: str, content: bytes) -> str:
        """Send a file to Slack, where nobody sees it yet; returns its id, raises what `call` does.

        Raises:
            FileRefused: Slack does not take it.
        """
        place = await self.read("files.getUploadURLExternal", filename=name, length=len(content))
        client = self.client
        assert self._session is not None
        url, timeout = place["upload_url"], aiohttp.ClientTimeout(total=UPLOAD_SECONDS)
        proxy = None if bypasses_proxy(url) else client.proxy
        try:
            async with self._session.post(
                url, data=content, proxy=proxy, timeout=timeout
            ) as answer:
                if not answer.ok and answer.status < SERVER_ERROR:
                    raise FileRefused(f"Slack answered {answer.status}")
                answer.raise_for_status()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUncertain("upload", type(error).__name__) from error
        return str(place["file_id"])

    async def share(
        self, files: Mapping[str, str], *, channel: str, thread: str, comment: str | None = None
    ) -> None:
        """Show files, titles by id, in one message of a thread; raises what `call` does."""
        await self.call(
            "files.completeUploadExternal",
            files=[{"id": number, "title": title} for number, title in files.items()],
            channel_id=channel,
            thread_ts=thread,
            initial_comment=comment,
        )

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
        self._session = self._client = None


def failure(method: str, error: SlackApiError) -> PostError:
    """Say what an error of the SDK means for whoever called."""
    response = error.response
    status = int(getattr(response, "status_code", None) or getattr(response, "status", None) or 0)
    data = getattr(response, "data", None)
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == TOO_MANY_REQUESTS or code == "ratelimited":
        wait = str(response.headers.get("Retry-After", ""))
        seconds = float(wait) if wait.isdigit() else BUSY_SECONDS
        return PostDelayed(f"Slack limits {method}", retry_after=max(seconds, 1.0))
    if status >= SERVER_ERROR or code in PASSING or not code:
        return SlackUncertain(method, code or f"status {status}")
    return SlackRefused(method, code)


def is_slacks(url: str, base_url: str) -> bool:
    """Tell whether an address is Slack's own, or lies where its methods are called."""
    parts, base = urlsplit(url), urlsplit(base_url)
    host = parts.hostname or ""
    if parts.scheme == base.scheme and host == base.hostname:
        return True
    homes = {HOME, (base.hostname or HOME).removeprefix("www.")}
    return parts.scheme == "https" and any(f".{host}".endswith(f".{home}") for home in homes)


def bypasses_proxy(url: str) -> bool:
    """Tell whether an address is called directly whatever proxy there is."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or bool(proxy_bypass(host)):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def _save(answer: aiohttp.ClientResponse, path: Path, most: int) -> None:
    size = 0
    with await asyncio.to_thread(path.open, "wb") as file:
        async for piece in answer.content.iter_chunked(PIECE_BYTES):
            size += len(piece)
            if size > most:
                raise FileRefused(f"it is larger than {most // 1024 // 1024} MB")
            await asyncio.to_thread(file.write, piece)
