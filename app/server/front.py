"""Takes webhooks before the application does: verify, store, acknowledge, and nothing else.

A 2xx is sent only after the commit. What is no webhook passes on, once Host and Origin are right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import Any

import orjson

from app.core.adapters import WebhookAdapter
from app.core.inbound import Delivery
from app.core.ports import Clock
from app.errors import DeliveryRefused, StoreUnavailable

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES = 25 * 1024 * 1024
"""GitHub's own cap on a delivery, the largest of the platforms."""
BODY_SECONDS = 10.0
"""How long a sender may take for a body: GitHub gives up after as much."""
START_SECONDS = 10.0
"""How long a request waits for a bridge that has just begun to listen: ten times what it takes."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_JSON = (b"content-type", b"application/problem+json")
_EMPTY = (b"content-length", b"0")


class Front:
    """A table of webhook paths in front of an application; it may change while running."""

    def __init__(
        self,
        application: Application,
        take: Callable[[Delivery], Awaitable[None]],
        clock: Clock,
        *,
        hosts: Collection[str],
        started: asyncio.Event | None = None,
    ) -> None:
        self._application = application
        self._take = take
        self._clock = clock
        self._hosts = {host.lower() for host in hosts}
        self._started = started
        self._table: dict[str, WebhookAdapter] = {}

    def open(self, adapters: Iterable[WebhookAdapter]) -> None:
        """Take the webhooks of these adapters from now on."""
        for adapter in adapters:
            for path in adapter.paths:
                self._table[path] = adapter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        adapter = self._table.get(scope["path"])
        if adapter is not None:
            await self._webhook(adapter, scope, receive, send)
        elif refusal := self._stranger(scope):
            await _answer(send, 403, refusal)
        elif scope["method"] not in SAFE_METHODS and not await self._is_awake():
            await _answer(send, 503, "the bridge is still starting; try again in a moment")
        else:
            await self._application(scope, receive, send)

    async def _webhook(
        self, adapter: WebhookAdapter, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if scope["method"] != "POST":
            await _answer(send, 405, "send webhooks with POST")
            return
        try:
            headers = dict(scope["headers"])
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(headers, receive)
            delivery = adapter.verify(headers, body, self._clock.now())
            await self._take(delivery)
        except DeliveryRefused as refused:
            logger.info("%s refused a delivery: %s", adapter.service_name, refused.reason)
            await _answer(send, refused.status, refused.reason)
        except TimeoutError:
            await _answer(send, 408, "the body did not arrive in time")
        except StoreUnavailable as error:
            await _answer(send, 503, str(error))
        else:
            # Without a length the server sends the end of the body as a packet of its own.
            await send({"type": "http.response.start", "status": 200, "headers": [_EMPTY]})
            await send({"type": "http.response.body", "body": b""})

    async def _is_awake(self) -> bool:
        """Wait until what the last run left behind is sorted out: nobody may act on it before."""
        if self._started is None or self._started.is_set():
            return True
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._started.wait()
        except TimeoutError:
            return False
        return True

    def _stranger(self, scope: Scope) -> str | None:
        """Say what is wrong with where a request claims to go and to come from."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if host not in self._hosts:
            return "this Host is not served here; set BRIDGE_BASE_URL to the address you use"
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            return "requests from other sites are refused"
        return None


async def _body(headers: dict[bytes, bytes], receive: Receive) -> bytes:
    """Read a body up to the cap.

    Raises:
        DeliveryRefused: it is too large or was cut off.
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
        raise DeliveryRefused("the body was cut off", status=400)
    piece: bytes = message.get("body", b"")
    return piece


async def _answer(send: Send, status: int, detail: str) -> None:
    """Answer with a problem; the words are ours and hold nothing that came in."""
    body = orjson.dumps({"title": detail, "status": status})
    headers = [_JSON, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
