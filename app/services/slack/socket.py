"""Keeps the Socket Mode connection to Slack open: the next one opens before the old one closes.

A frame is stored first and then acknowledged; Slack resends one that could not be stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import aiohttp
import orjson
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.web.async_client import AsyncWebClient

from app.errors import BridgeError, ServiceRefused
from app.model.keys import adapter_name
from app.services.slack.api import SDK_LOGGER, SlackRefused, SlackUncertain, failure
from app.tasks import Tasks

logger = logging.getLogger(__name__)

PING_SECONDS: Final = 5.0
"""Ping interval; a connection that is silent for four times as long is dead."""
OPEN_SECONDS: Final = 20.0
"""Time limit until Slack says hello on a new connection."""
CLOSE_SECONDS: Final = 1.0
"""Time limit for a clean disconnect."""
LOOK_SECONDS: Final = 0.5
"""How often to check that the connection is alive."""

Keep = Callable[[dict[str, Any], bytes], Awaitable[None]]
Opened = Callable[[float | None], None]
"""Called for the first connection, and after a gap with the time the last one was alive."""
REFRESHES: Final = {"refresh_requested", "warning"}
"""Reasons with which Slack asks for a new connection while it still uses the old one."""


class SlackConnection(SocketModeClient):
    """One SDK connection; its owner decides when the next one is opened."""

    def __init__(self, web_client: AsyncWebClient, token: str, ping_seconds: float) -> None:
        super().__init__(
            token,
            logger=SDK_LOGGER,
            web_client=web_client,
            auto_reconnect_enabled=False,
            ping_interval=ping_seconds,
            on_close_listeners=[self._end],
            on_error_listeners=[self._end],
        )
        self.proxy = web_client.proxy
        self.hello = asyncio.Event()
        self.opened_at = 0.0
        self.is_refreshed = False
        self.ended = asyncio.Event()
        self.take: Callable[[dict[str, Any], bytes], None] = lambda _frame, _raw: None

    async def enqueue_message(self, message: str) -> None:
        """Take a frame in order; the SDK would start a task for each, in no order."""
        raw = message.encode()
        frame = orjson.loads(raw)
        match frame.get("type"):
            case "hello":
                self.hello.set()
            case "disconnect":
                self.is_refreshed = frame.get("reason") in REFRESHES
                self.ended.set()
            case _:
                self.take(frame, raw)

    async def open(self) -> None:
        """Connect, and wait until Slack says hello."""
        await self.connect()  # type: ignore[no-untyped-call]  # the SDK's
        await self.hello.wait()
        self.opened_at = time.time()  # the clock that the SDK's pings tell

    @property
    def heard_at(self) -> float:
        """When the connection was last known to work."""
        return self.last_ping_pong_time or self.opened_at

    async def acknowledge(self, envelope: str) -> None:
        """Tell Slack, on the connection that it used, that a frame was stored."""
        assert self.current_session is not None
        await self.current_session.send_str(f'{{"envelope_id":"{envelope}"}}')

    async def close(self) -> None:
        """Disconnect; on a dead connection the SDK would wait, and then leave everything open."""
        self.closed = True
        for task in (self.message_processor, self.current_session_monitor, self.message_receiver):
            if task is not None:
                task.cancel()
        try:
            with suppress(TimeoutError, ConnectionError, aiohttp.ClientError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.disconnect()  # type: ignore[no-untyped-call]  # the SDK's
        finally:
            await self.aiohttp_client_session.close()

    async def _end(self, _message: object) -> None:
        self.ended.set()


class Socket:
    """The Socket Mode connections of one app."""

    def __init__(
        self, agent: str, suffix: str, token: str, ping_seconds: float = PING_SECONDS
    ) -> None:
        self._agent = agent
        self._suffix = suffix
        self._token = token
        self._ping_seconds = ping_seconds
        self._tasks = Tasks(f"slack socket of {agent}")

    async def run(self, web_client: AsyncWebClient, keep: Keep, opened: Opened) -> None:
        """Store and acknowledge frames for as long as there is a connection.

        Raises:
            ServiceRefused: Slack refuses this app a socket.
            PostError: Slack cannot open one now.
            TimeoutError: it took too long.
        """
        current = await self._open(web_client, keep)
        opened(None)
        try:
            while True:
                await self._wait_until_broken(current)
                heard = current.heard_at
                # The next one first: Slack sends it what the old one no longer takes.
                following = await self._open(web_client, keep)
                if not (current.is_refreshed and await current.is_connected()):
                    opened(heard)
                current, old = following, current
                await old.close()
        finally:
            await current.close()
            await self._tasks.close()

    async def try_out(self, web_client: AsyncWebClient) -> None:
        """Ask Slack for a socket without opening it; raises what `run` does."""
        await self._address(web_client)

    async def _open(self, web_client: AsyncWebClient, keep: Keep) -> SlackConnection:
        connection = SlackConnection(web_client, self._token, self._ping_seconds)

        def take(frame: dict[str, Any], raw: bytes) -> None:
            self._tasks.start(self._keep(connection, keep, frame, raw), name="frame")

        connection.take = take
        try:
            connection.wss_uri = await self._address(web_client)
            async with asyncio.timeout(OPEN_SECONDS):
                await connection.open()
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _address(self, web_client: AsyncWebClient) -> str:
        try:
            answer = await web_client.apps_connections_open(app_token=self._token)
        except SlackApiError as error:
            failed = failure("apps.connections.open", error)
            if not isinstance(failed, SlackRefused) or failed.error == "too_many_websockets":
                raise failed from error
            raise ServiceRefused(
                adapter_name("slack", self._agent),
                f"Slack refused a socket for its app ({failed.error})",
                f"Check that SLACK_APP_TOKEN{self._suffix} is an app-level token with "
                "connections:write, and that Socket Mode is on in the app's settings.",
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SlackUncertain("apps.connections.open", type(error).__name__) from error
        return str(answer["url"])

    async def _wait_until_broken(self, connection: SlackConnection) -> None:
        """Wait until a connection ends or is found dead."""
        while await connection.is_connected():
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await connection.ended.wait()
            except TimeoutError:
                continue
            return

    async def _keep(
        self, connection: SlackConnection, keep: Keep, frame: dict[str, Any], raw: bytes
    ) -> None:
        try:
            await keep(frame, raw)
        except BridgeError as error:
            logger.warning(
                "cannot store a frame for %s, Slack will resend it: %s", self._agent, error
            )
            return
        try:
            await connection.acknowledge(frame["envelope_id"])
        except (ConnectionError, aiohttp.ClientError) as error:
            # Slack resends it, and the inbox recognises its id.
            logger.info("cannot acknowledge a frame for %s: %s", self._agent, error)
