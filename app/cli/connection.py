"""Sends requests to a running bridge over the socket in DATA_DIR, and reads its answers.

The admin token is sent only over that socket, never to an address from the settings: any program on
this machine may listen there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from app.cli.running import is_running
from app.config import Configuration, ensure_secrets
from app.errors import BridgeError
from app.server.local_socket import SOCKET_HOST, socket_path

M = TypeVar("M", bound=BaseModel)

TIMEOUTS: Final = httpx.Timeout(35.0, connect=2.0)
"""The bridge runs on this machine; it may take 30 s to answer a message, and a stream of events
sends something every 15 s."""
START_SECONDS: Final = 10.0
"""How long a bridge that holds the lock may take before it listens."""
LOOK_SECONDS: Final = 0.3
"""Between two attempts to connect."""


class BridgeUnreachable(BridgeError):
    """A bridge runs but cannot be reached."""


class BridgeRefused(BridgeError):
    """The bridge answered with a problem."""

    def __init__(self, words: str, status: int) -> None:
        self.status = status
        super().__init__(words)


class Connection:
    """A running bridge, as the commands reach it."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, shape: type[M], path: str, query: dict[str, Any] | None = None) -> M:
        """Read something."""
        return self.read(shape, await self.request("GET", path, params=query))

    async def send(self, shape: type[M], path: str, body: dict[str, Any]) -> M:
        """Send something, and read the answer."""
        return self.read(shape, await self.request("POST", path, json=body))

    async def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request.

        Raises:
            BridgeUnreachable: the bridge went away.
            BridgeRefused: it answered with a problem.
        """
        try:
            response = await self._http.request(method, f"/api/v1{path}", **more)
        except httpx.HTTPError as error:
            raise self._lost(error) from error
        if response.is_error:
            raise _refusal(response)
        return response

    def read(self, shape: type[M], response: httpx.Response) -> M:
        """Read an answer.

        Raises:
            BridgeUnreachable: it has another shape.
        """
        try:
            return shape.model_validate_json(response.content)
        except ValidationError as error:
            raise BridgeUnreachable(
                "unexpected answer from the running bridge. It may be another version: restart it."
            ) from error

    async def stream(self, path: str) -> AsyncGenerator[tuple[str, bytes]]:
        """Yield the events of a path, each with its name and its data, until the bridge ends."""
        try:
            async with self._http.stream("GET", f"/api/v1{path}") as response:
                if response.is_error:
                    await response.aread()
                    raise _refusal(response)
                async for event in server_events(response.aiter_bytes()):
                    yield event
        except httpx.HTTPError as error:
            raise self._lost(error) from error

    def _lost(self, error: httpx.HTTPError) -> BridgeUnreachable:
        return BridgeUnreachable(
            f"the bridge went away ({type(error).__name__}). What it accepted is kept, "
            "and a turn goes on when the bridge starts again."
        )


@asynccontextmanager
async def connect(configuration: Configuration) -> AsyncIterator[Connection | None]:
    """Connect to the bridge that holds DATA_DIR; None if there is none, or it ends meanwhile.

    Raises:
        BridgeUnreachable: a process holds DATA_DIR and does not answer.
    """
    with socket_path(configuration.data_dir) as path:
        async with _open(path) as http:
            if not await _answers(http, configuration):
                yield None
                return
            token = ensure_secrets(configuration).admin_token.get_secret_value()
            http.headers["Authorization"] = f"Bearer {token}"
            yield Connection(http)


def require_running(configuration: Configuration) -> None:
    """Refuse to begin what a running bridge has to end.

    Raises:
        BridgeUnreachable: there is none.
    """
    if not is_running(configuration.data_dir):
        raise not_running(configuration)


async def server_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, bytes]]:
    """Split server-sent events into the name and the data of each.

    By bytes: JSON may hold other Unicode line ends unescaped.
    """
    rest = b""
    async for chunk in chunks:
        *blocks, rest = (rest + chunk).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            if b"event" in fields:
                yield fields[b"event"].decode(), fields.get(b"data", b"")


def not_running(configuration: Configuration) -> BridgeUnreachable:
    """Say that no bridge runs, and how to start one."""
    return BridgeUnreachable(
        f"no bridge is running on DATA_DIR {str(configuration.data_dir)!r}. "
        "Start one with `agent-bridge serve`."
    )


def _open(path: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=path),
        base_url=f"http://{SOCKET_HOST}",
        timeout=TIMEOUTS,
    )


async def _answers(http: httpx.AsyncClient, configuration: Configuration) -> bool:
    """Wait until the bridge that holds the lock answers; False once the lock is free."""
    try:
        async with asyncio.timeout(START_SECONDS):
            while await asyncio.to_thread(is_running, configuration.data_dir):
                with suppress(httpx.HTTPError):
                    if (await http.get("/healthz")).is_success:
                        return True
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise BridgeUnreachable(
            f"DATA_DIR {str(configuration.data_dir)!r} is in use, but no bridge answers there. If "
            "another `ask` is running, wait for it; if a bridge is running, restart it."
        ) from None
    return False


def _refusal(response: httpx.Response) -> BridgeRefused:
    """Convert a problem that the bridge answered with."""
    try:
        problem = response.json()
        words = str(problem.get("detail") or problem["title"])
    except (ValueError, KeyError, AttributeError):
        words = f"the bridge answered with status {response.status_code}"
    if response.status_code == httpx.codes.UNAUTHORIZED:
        words = (
            "the bridge rejected this admin token. Use the BRIDGE_ADMIN_TOKEN that it was "
            "started with."
        )
    return BridgeRefused(words, response.status_code)
