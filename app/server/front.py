"""Handles webhooks in front of the application: verify, store, acknowledge, and nothing else.

A delivery to be handled gets its 2xx only after the commit. Other requests pass on if their Host
and Origin are right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson

from app.core.adapters import Adapter
from app.core.inbound import Delivery
from app.core.outage import hurried
from app.core.ports import Clock, Counters
from app.errors import DeliveryRefused, StoreUnavailable
from app.server.origins import own_origin
from app.server.problems import AGAIN_SECONDS

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES = 25 * 1024 * 1024
"""The largest limit that a platform sets for its own deliveries."""
HEAD_BYTES = 32 * 1024
"""Twice what browsers and platforms send at most."""
BODY_SECONDS = 10.0
"""How long a sender may take for a body: platforms give up after this time."""
START_SECONDS = 10.0
"""How long a request waits for a bridge that is still starting: ten times the usual start."""
ACKNOWLEDGED = 200
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_JSON = (b"content-type", b"application/problem+json")
_EMPTY = (b"content-length", b"0")
_AGAIN = (b"retry-after", str(AGAIN_SECONDS).encode())


class Front:
    """A table of webhook paths in front of an application; it may change while running."""

    def __init__(
        self,
        application: Application,
        take: Callable[[Delivery], Awaitable[None]],
        clock: Clock,
        counters: Counters,
        *,
        hosts: Collection[str],
        base_url: str = "",
        started: asyncio.Event | None = None,
        hooks_port: int | None = None,
    ) -> None:
        """Take webhooks on every port, or with `hooks_port` on that one, which serves no more."""
        self._application = application
        self._take = take
        self._clock = clock
        self._counters = counters
        self._hosts = {host.lower() for host in hosts}
        self._base_url = base_url
        self._started = started
        self._hooks_port = hooks_port
        self._table: dict[str, Adapter] = {}

    def open(self, adapters: Iterable[Adapter]) -> None:
        """Accept the webhooks of these adapters from now on, and of no others."""
        self._table = {path: adapter for adapter in adapters for path in adapter.paths}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; none waits for a database that is away."""
        with hurried():
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        only_hooks = self._is_hooks_port(scope)
        if scope["type"] != "http":
            await (_hang_up if only_hooks else self._application)(scope, receive, send)
            return
        adapter = self._table.get(scope["path"])
        if malformed := _check_headers(scope["headers"]):
            await _answer(send, *malformed)
        elif adapter is None and only_hooks:
            await _answer(send, 404, "this port receives webhooks and nothing else")
        elif adapter is not None and only_hooks is False:
            await _answer(send, 404, "webhooks are received on another port, HOOKS_PORT")
        elif adapter is not None:
            await self._webhook(adapter, scope, receive, send)
        elif refusal := self._check_origin(scope):
            await _answer(send, 403, refusal)
        elif scope["method"] not in SAFE_METHODS and not await self._is_awake():
            await _answer(send, 503, "the bridge is still starting; try again in a moment")
        else:
            await self._application(scope, receive, send)

    async def _webhook(self, adapter: Adapter, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await _answer(send, 405, "send webhooks with POST")
            return
        began = self._clock.monotonic()
        try:
            headers = dict(scope["headers"])
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(headers, receive)
            delivery = adapter.verify(headers, body, self._clock.now())
            await self._take(delivery)
        except DeliveryRefused as refused:
            logger.info("%s refused a delivery: %s", adapter.service_name, refused.reason)
            self._count(adapter, "refused")
            if refused.status == ACKNOWLEDGED:
                await _acknowledge(send)
            else:
                await _answer(send, refused.status, refused.reason)
        except TimeoutError:
            self._count(adapter, "refused")
            await _answer(send, 408, "the body did not arrive in time")
        except StoreUnavailable as error:
            self._count(adapter, "unavailable")
            await _answer(send, 503, str(error))
        else:
            await _acknowledge(send)
            self._counters.observe("ack_seconds", self._clock.monotonic() - began)

    def _is_hooks_port(self, scope: Scope) -> bool | None:
        """Tell whether a request came to the port of webhooks; None if they have no port."""
        if self._hooks_port is None:
            return None
        _, port = scope.get("server") or (None, None)
        return bool(port == self._hooks_port)

    def _count(self, adapter: Adapter, outcome: str) -> None:
        self._counters.count("deliveries", adapter=adapter.service_name, outcome=outcome)

    async def _is_awake(self) -> bool:
        """Wait until the last run is recovered: nothing may act on what it left before."""
        if self._started is None or self._started.is_set():
            return True
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._started.wait()
        except TimeoutError:
            return False
        return True

    def _check_origin(self, scope: Scope) -> str | None:
        """Return what is wrong with the Host or Origin of a request, if anything."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts:
            return "unknown Host; set BRIDGE_BASE_URL to the address you use"
        origin = headers.get(b"origin")
        own = own_origin(host, self._base_url)
        if origin is not None and origin.decode("latin-1").lower() != own:
            return "requests from other sites are refused"
        return None


def _check_headers(headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, str] | None:
    """Return what is wrong with the headers of a request, for any path."""
    if sum(len(name) + len(value) for name, value in headers) > HEAD_BYTES:
        return 431, "the headers are too large"
    if sum(name == b"host" for name, _ in headers) > 1:
        return 400, "send exactly one Host header"
    return None


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Read a body up to the cap.

    Raises:
        DeliveryRefused: it is too large or incomplete.
    """
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > BODY_BYTES:
        raise DeliveryRefused("the body is too large", status=413)
    message = await receive()
    if not message.get("more_body"):
        return _piece(message)
    pieces = [_piece(message)]
    size = len(pieces[0])
    while message.get("more_body"):
        message = await receive()
        pieces.append(_piece(message))
        size += len(pieces[-1])
        if size > BODY_BYTES:
            raise DeliveryRefused("the body is too large", status=413)
    return b"".join(pieces)


def _piece(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise DeliveryRefused("the body is incomplete", status=400)
    piece: bytes = message.get("body", b"")
    return piece


async def _hang_up(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close"})


async def _acknowledge(send: Send) -> None:
    # Without a length the server sends the end of the body in a separate packet.
    await send({"type": "http.response.start", "status": ACKNOWLEDGED, "headers": [_EMPTY]})
    await send({"type": "http.response.body", "body": b""})


async def _answer(send: Send, status: int, detail: str) -> None:
    """Answer with a problem; the text is ours and repeats nothing from the request."""
    body = orjson.dumps({"title": detail, "status": status})
    headers = [_JSON, (b"content-length", str(len(body)).encode())]
    headers += [_AGAIN] if status == HTTPStatus.SERVICE_UNAVAILABLE else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
