"""Handles webhooks in front of the application, and redacts its answers behind it.

A webhook is verified, stored and acknowledged, and nothing else: a delivery to be handled gets its
2xx only after the commit. Other requests pass on if their Host and Origin are right.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from app.clock import Clock
from app.config import Configuration
from app.core.adapters import Adapter
from app.errors import DeliveryRefused, StoreUnavailable
from app.model.inbound import Delivery
from app.model.ports import Counters
from app.retry import hurried
from app.server.local_socket import SOCKET_HOST
from app.server.problems import AGAIN_SECONDS
from app.vault import Vault

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES: Final = 25 * 1024 * 1024
"""The largest limit that a platform sets for its own deliveries."""
BODY_SECONDS: Final = 10.0
"""How long a sender may take for a body: platforms give up after this time."""
BODIES: Final = 64
"""Bodies that may be under way: more than a burst of a platform, which takes milliseconds each."""
BODIES_BYTES: Final = 64 * 1024 * 1024
"""What they may hold together: two of the largest, and a small machine has room for it."""
HEAD_BYTES = 32 * 1024
"""Twice what browsers and platforms send at most."""
START_SECONDS = 10.0
"""How long a request waits for a bridge that is still starting: ten times the usual start."""
ACKNOWLEDGED = 200
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({b"same-origin", b"none"})
"""What browsers call our own page, and an address that a person typed or bookmarked."""
OPENED = (b"navigate", b"document")
"""What browsers call a link that a person follows in a window of their own."""
OTHER_SITE = "requests from other sites are refused"
_JSON = (b"content-type", b"application/problem+json")
_CLOSE = (b"connection", b"close")
_EMPTY = (b"content-length", b"0")
_AGAIN = (b"retry-after", str(AGAIN_SECONDS).encode())
_TEXTS = (b"text/html", b"text/event-stream", b"application/json", b"application/problem+json")
_LENGTH = b"content-length"
HANDS_OUT = ("/login/", "/api/v1/login-links", "/tokens", "/api/v1/tokens")
"""Paths that hand out a secret on purpose."""


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
        self._bodies = Bodies()

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
            if only_hooks:
                await send({"type": "websocket.close"})
            else:
                await self._application(scope, receive, send)
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
            _require_signature(adapter, headers)
            body = await self._bodies.read(headers, receive)
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
            return OTHER_SITE
        return None if _is_own_or_opened(headers) else OTHER_SITE


def own_origin(host: str, base_url: str) -> str:
    """Return the origin of our pages under a host: https only where BRIDGE_BASE_URL says so."""
    base = urlsplit(base_url.lower())
    scheme = base.scheme if host.lower() == base.netloc else "http"
    return f"{scheme}://{host.lower()}"


def _is_own_or_opened(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request is of our own page, of no page, or a person who opens an address.

    The scripts and images of another page send no Origin with a GET, but browsers name the page's
    site. One on another port of this machine is of the same site, and not ours either.
    """
    if headers.get(b"sec-fetch-site", b"none") in OWN_SITES:
        return True
    return (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == OPENED


def _check_headers(headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, str] | None:
    """Return what is wrong with the headers of a request, for any path."""
    if sum(len(name) + len(value) for name, value in headers) > HEAD_BYTES:
        return 431, "the headers are too large"
    if sum(name == b"host" for name, _ in headers) > 1:
        return 400, "send exactly one Host header"
    return None


def _require_signature(adapter: Adapter, headers: Mapping[bytes, bytes]) -> None:
    """Refuse what is certainly not signed before its body is read."""
    name = adapter.signature_header
    if name and not headers.get(name.lower().encode()):
        raise DeliveryRefused(f"{name} is missing")


async def _acknowledge(send: Send) -> None:
    # Without a length the server sends the end of the body in a separate packet.
    await send({"type": "http.response.start", "status": ACKNOWLEDGED, "headers": [_EMPTY]})
    await send({"type": "http.response.body", "body": b""})


async def _answer(send: Send, status: int, detail: str) -> None:
    """Answer with a problem; the text is ours and repeats nothing from the request.

    The connection is closed: the rest of the request may never come, and is not wanted.
    """
    body = orjson.dumps({"title": detail, "status": status})
    headers = [_JSON, _CLOSE, (b"content-length", str(len(body)).encode())]
    headers += [_AGAIN] if status == HTTPStatus.SERVICE_UNAVAILABLE else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Bodies:
    """Reads the bodies of webhooks, within a bound of time, number and memory for all together.

    Who sent a body is known only once it was read, so strangers can send some. When there are too
    many, the one that has been under way longest gives way: what a platform sends arrives at once.
    """

    def __init__(self) -> None:
        self._under_way: dict[asyncio.Timeout, int] = {}
        """The size of each so far, by its bound of time, the oldest first."""

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read a body up to the cap.

        Raises:
            DeliveryRefused: it is too large or incomplete.
            TimeoutError: it did not arrive in time, or it gave way to others.
        """
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > BODY_BYTES:
            raise DeliveryRefused("the body is too large", status=413)
        async with asyncio.timeout(BODY_SECONDS) as bound:
            pieces: list[bytes] = []
            self._under_way[bound] = 0
            try:
                self._grow(bound, 0)
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise DeliveryRefused("the body is incomplete", status=400)
                    pieces.append(message.get("body", b""))
                    if not message.get("more_body"):
                        return b"".join(pieces)
                    self._grow(bound, len(pieces[-1]))
            finally:
                self._under_way.pop(bound, None)

    def _grow(self, bound: asyncio.Timeout, size: int) -> None:
        """Count a piece of a body, and let others give way for it."""
        if bound not in self._under_way:
            return
        self._under_way[bound] += size
        if self._under_way[bound] > BODY_BYTES:
            raise DeliveryRefused("the body is too large", status=413)
        while len(self._under_way) > BODIES or sum(self._under_way.values()) > BODIES_BYTES:
            oldest = next(iter(self._under_way))
            del self._under_way[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())


class Redacting:
    """Wraps an application and redacts known secrets in its answers, as the last step.

    However a view joins, strips or shortens text, the search runs on the bytes that are sent.
    """

    def __init__(self, application: Application, vault: Vault) -> None:
        self._application = application
        self._vault = vault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and not scope["path"].startswith(HANDS_OUT):
            send = _Answer(send, self._vault).send
        await self._application(scope, receive, send)


class _Answer:
    """One outgoing answer: its headers wait until the length of its body is known."""

    def __init__(self, send: Send, vault: Vault) -> None:
        self._send = send
        self._vault = vault
        self._head: Message | None = None
        self._passes = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if self._head is not None:
            self._passes = _passes(self._head, message)
            message = self._redact(message)
            await self._send({**self._head, "headers": _with_length(self._head, message)})
            self._head = None
        else:
            message = self._redact(message)
        await self._send(message)

    def _redact(self, message: Message) -> Message:
        body = message.get("body", b"")
        if self._passes or not body:
            return message
        return {**message, "body": self._vault.redact(body.decode()).encode()}


def _passes(head: Message, body: Message) -> bool:
    """Return whether an answer is sent unchanged: no text, or a file, which was checked before."""
    headers = dict(head["headers"])
    in_pieces = body.get("more_body", False) and _LENGTH in headers
    return in_pieces or not headers.get(b"content-type", b"").startswith(_TEXTS)


def _with_length(head: Message, body: Message) -> list[tuple[bytes, bytes]]:
    length = b"%d" % len(body.get("body", b""))
    whole = not body.get("more_body", False)
    return [
        (name, length if name == _LENGTH and whole and body.get("body") else value)
        for name, value in head["headers"]
    ]


def hosts_of(configuration: Configuration, page_url: str) -> set[str]:
    """List the Host headers that mean this bridge."""
    port = configuration.settings.port
    own = {"127.0.0.1", "localhost", "[::1]", configuration.settings.host}
    reached = {urlsplit(url).netloc for url in (configuration.base_url, page_url)}
    return {f"{host}:{port}" for host in own} | reached | {SOCKET_HOST}
