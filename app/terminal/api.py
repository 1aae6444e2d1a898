"""Reaches a running bridge over the socket in DATA_DIR, and reads its answers as models.

The admin token is sent only over that socket, never to an address from the settings: any program on
this machine may listen there.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from app.config import Configuration, ensure_secrets
from app.config.agents import NAME
from app.errors import BridgeError, NotFound
from app.server.local_socket import SOCKET_HOST, socket_path
from app.server.shapes import Page
from app.terminal.framing import read_configuration

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

LOCK_NAME: Final = "bridge.lock"
"""The store's name of it; importing the store for one name would cost 0.4 s. A test compares."""
TIMEOUTS: Final = httpx.Timeout(35.0, connect=2.0)
"""The bridge runs on this machine; it may take 30 s to answer a message, and a stream of events
sends something every 15 s."""
REMOVAL: Final = httpx.Timeout(120.0, connect=2.0)
"""When something is removed, its running work is stopped and its last messages are answered."""
START_SECONDS: Final = 10.0
"""How long a bridge that holds the lock may take before it listens."""
LOOK_SECONDS: Final = 0.3
"""Between two attempts to connect."""
MOST_LISTED: Final = 500
"""The most that the API lists at once."""


class BridgeUnreachable(BridgeError):
    """A bridge runs but cannot be reached."""


class BridgeRefused(BridgeError):
    """The bridge answered with a problem."""

    def __init__(self, words: str, status: int) -> None:
        self.status = status
        super().__init__(words)


class Connection:
    """A running bridge, for commands that do several things at a time."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request.

        Raises:
            BridgeUnreachable: the bridge went away.
            BridgeRefused: it answered with a problem.
        """
        try:
            response = await self._http.request(method, f"/api/v1{path}", **more)
        except httpx.HTTPError as error:
            raise _lost(error) from error
        if response.is_error:
            raise _refusal(response)
        return response

    async def send(self, shape: type[M], method: str, path: str, **more: Any) -> M:
        """Send a request and read the answer.

        Raises:
            BridgeError: as for `request`; or the answer has another shape.
        """
        response = await self.request(method, path, **more)
        try:
            return shape.model_validate_json(response.content)
        except ValidationError as error:
            raise BridgeUnreachable(
                "unexpected answer from the running bridge. It may be another version: restart it."
            ) from error

    async def pages(
        self, shape: type[M], path: str, query: dict[str, Any], by: str = "after"
    ) -> list[M]:
        """List all of something, page by page."""
        found: list[M] = []
        while True:
            page = await self.send(Page[shape], "GET", path, params=query)  # type: ignore[valid-type]  # known when it runs
            found += page.items
            if page.next is None:
                return found
            query = {**query, by: page.next}

    async def download(self, path: str, to: BinaryIO) -> None:
        """Write what a path answers with into a file, as it comes."""
        try:
            async with self._http.stream("GET", f"/api/v1{path}") as response:
                if response.is_error:
                    await response.aread()
                    raise _refusal(response)
                async for chunk in response.aiter_bytes():
                    to.write(chunk)
        except httpx.HTTPError as error:
            raise _lost(error) from error

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
            raise _lost(error) from error


class Api:
    """A running bridge, for commands that do one thing after the other; each is a call of its own.

    Every call raises BridgeUnreachable if no bridge runs or it does not answer, and BridgeRefused
    if it answers with a problem.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration or read_configuration()

    def get(self, shape: type[M], path: str, **query: object) -> M:
        """Read something; what is None in the query is left out."""
        return self.send(shape, "GET", path, params=_known(query))

    def items(self, shape: type[M], path: str, **query: object) -> list[M]:
        """List some things, as many as the bridge lists at once."""
        page = self.get(Page[shape], path, **query)  # type: ignore[valid-type]  # known when it runs
        return list(page.items)

    def all_items(self, shape: type[M], path: str, by: str = "after", **query: object) -> list[M]:
        """List all of something."""
        return self._run(lambda bridge: bridge.pages(shape, path, _known(query), by))

    def post(self, shape: type[M], path: str, **body: object) -> M:
        """Send something, and read the answer."""
        return self.send(shape, "POST", path, json=body)

    def send(self, shape: type[M], method: str, path: str, **more: Any) -> M:
        """Send any request, and read the answer."""
        return self._run(lambda bridge: bridge.send(shape, method, path, **more))

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send any request."""
        return self._run(lambda bridge: bridge.request(method, path, **more))

    def download(self, path: str, to: BinaryIO) -> None:
        """Write what a path answers with into a file, as it comes."""
        self._run(lambda bridge: bridge.download(path, to))

    def _run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        async def run() -> T:
            async with connect(self._configuration) as bridge:
                if bridge is None:
                    raise not_running(self._configuration)
                return await work(bridge)

        return asyncio.run(run())


def find_bridge(configuration: Configuration) -> Api | None:
    """Find the bridge that holds DATA_DIR; None if there is none, or it ends meanwhile.

    Raises:
        BridgeUnreachable: a process holds DATA_DIR and does not answer.
    """

    async def is_there() -> bool:
        async with connect(configuration) as bridge:
            return bridge is not None

    is_found = is_running(configuration.data_dir) and asyncio.run(is_there())
    return Api(configuration) if is_found else None


@asynccontextmanager
async def connect(configuration: Configuration) -> AsyncIterator[Connection | None]:
    """Connect to the bridge that holds DATA_DIR; None if there is none, or it ends meanwhile.

    Raises:
        BridgeUnreachable: a process holds DATA_DIR and does not answer.
    """
    with socket_path(configuration.data_dir) as path:
        async with httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=path),
            base_url=f"http://{SOCKET_HOST}",
            timeout=TIMEOUTS,
        ) as http:
            if not await _answers(http, configuration):
                yield None
                return
            token = ensure_secrets(configuration).admin_token.get_secret_value()
            http.headers["Authorization"] = f"Bearer {token}"
            yield Connection(http)


def is_running(data_dir: Path) -> bool:
    """Tell whether a process holds the lock of a data folder; creates and keeps nothing."""
    try:
        handle = os.open(data_dir / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def not_running(configuration: Configuration) -> BridgeUnreachable:
    """Say that no bridge runs, and how to start one."""
    return BridgeUnreachable(
        f"no bridge is running on DATA_DIR {str(configuration.data_dir)!r}. "
        "Start one with `agent-bridge serve`."
    )


def local_address(configuration: Configuration) -> str:
    """Return the address of a bridge with this configuration, as seen from this machine."""
    settings = configuration.settings
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - read, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def agent_path(name: str) -> str:
    """Return the path of an agent; what is not a name would be the path of something else.

    Raises:
        NotFound: no agent can have that name.
    """
    if not NAME.fullmatch(name):
        raise NotFound("agent", name)
    return f"/agents/{name}"


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


def _known(query: dict[str, object]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _lost(error: httpx.HTTPError) -> BridgeUnreachable:
    return BridgeUnreachable(
        f"the bridge went away ({type(error).__name__}). What it accepted is kept, "
        "and a turn goes on when the bridge starts again."
    )


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
