"""The front: nothing forged gets in, nothing is acknowledged that was not stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.clock import SystemClock
from app.errors import StoreUnavailable
from app.metrics import Metrics
from app.model.inbound import Delivery
from app.server import front as bodies
from app.server.front import Front
from tests.support.hook import HookAdapter, message, request, sign

pytestmark = pytest.mark.anyio

PATH = "/webhooks/hook/demo"
FORGED = {"x-hook-signature": "0" * 64}


class Scene:
    """A front with an inbox that keeps what it was given."""

    def __init__(self) -> None:
        self.stored: list[Delivery] = []
        self.failure: Exception | None = None
        self.metrics = Metrics()
        self.front = Front(
            self.application, self.take, SystemClock(), self.metrics, hosts={"bridge.test"}
        )
        self.front.open([HookAdapter("demo", "http://platform.test", "token")])
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.front), base_url="http://bridge.test"
        )

    async def take(self, delivery: Delivery) -> None:
        if self.failure is not None:
            raise self.failure
        self.stored.append(delivery)

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_signed_event_is_stored_as_it_came_and_acknowledged(scene: Scene) -> None:
    body, headers = request(message("t1", "hello"), "d1")

    answer = await scene.http.post(PATH, content=body, headers=headers)

    (stored,) = scene.stored
    assert answer.status_code == 200
    assert (stored.body, stored.delivery_id, stored.adapter) == (body, "d1", "web:demo")


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    signature=st.binary(max_size=80).filter(lambda text: b"\n" not in text and b"\r" not in text)
)
async def test_no_forged_signature_is_accepted(scene: Scene, signature: bytes) -> None:
    headers = {b"x-hook-signature": signature, b"x-hook-delivery": b"d1"}

    answer = await scene.http.post(PATH, content=b"{}", headers=list(headers.items()))

    assert answer.status_code == 401
    assert scene.stored == []


async def test_a_signature_counts_only_for_the_bytes_it_was_made_for(scene: Scene) -> None:
    headers = {"x-hook-signature": sign(b"{}"), "x-hook-delivery": "d1"}

    answer = await scene.http.post(PATH, content=b"{ }", headers=headers)

    assert answer.status_code == 401


async def test_nothing_is_acknowledged_while_the_store_cannot_write(scene: Scene) -> None:
    scene.failure = StoreUnavailable("database or disk is full")
    body, headers = request(message("t1", "hello"))

    answer = await scene.http.post(PATH, content=body, headers=headers)

    assert answer.status_code == 503
    assert "full" in answer.json()["title"]


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_BYTES", 10)
    body, headers = request(message("t1", "hello"))

    answer = await scene.http.post(PATH, content=body, headers=headers)

    assert answer.status_code == 413


async def test_a_body_without_a_length_is_cut_off_at_the_cap(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_BYTES", 10)

    async def endless() -> Any:
        for _ in range(3):
            yield b"12345"

    answer = await scene.http.post(PATH, content=endless(), headers=FORGED)

    assert answer.status_code == 413


async def test_only_post_reaches_a_webhook(scene: Scene) -> None:
    assert (await scene.http.get(PATH)).status_code == 405


async def test_what_is_no_webhook_reaches_the_application(scene: Scene) -> None:
    assert (await scene.http.get("/healthz")).status_code == 204


@pytest.mark.parametrize("host", ["evil.test", "bridge.test.evil.test", "bridge.test:81", ""])
async def test_a_foreign_host_is_refused(scene: Scene, host: str) -> None:
    answer = await scene.http.get("/api/v1/sessions", headers={"Host": host})

    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "http://bridge.test.evil.test"])
async def test_a_foreign_origin_is_refused(scene: Scene, origin: str) -> None:
    assert (await scene.http.get("/", headers={"Origin": origin})).status_code == 403


async def test_the_own_origin_passes(scene: Scene) -> None:
    answer = await scene.http.get("/", headers={"Origin": "http://bridge.test"})

    assert answer.status_code == 204


async def test_a_platform_may_send_webhooks_under_any_host(scene: Scene) -> None:
    body, headers = request(message("t1", "hello"))

    answer = await scene.http.post(PATH, content=body, headers=headers | {"Host": "tunnel.test"})

    assert answer.status_code == 200


async def test_a_body_without_the_header_of_its_signature_is_not_read(scene: Scene) -> None:
    read: list[bytes] = []

    async def endless() -> Any:
        read.append(b"{")
        yield read[-1]

    answer = await scene.http.post(PATH, content=endless())

    assert (answer.status_code, read) == (401, [])
    assert "X-Hook-Signature is missing" in answer.json()["title"]
    assert answer.headers["connection"] == "close"


class Sender:
    """Sends a body in pieces, when a test says so."""

    def __init__(self, scene: Scene, body: bytes, headers: dict[str, str]) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.body = body
        self.answer = asyncio.ensure_future(
            scene.http.post(PATH, content=self._content(), headers=headers)
        )

    async def _content(self) -> AsyncIterator[bytes]:
        while (piece := await self.pieces.get()) is not None:
            yield piece
            self.pieces.task_done()  # the next one is wanted

    async def send(self, piece: bytes) -> None:
        """Send a piece, and wait until it was read."""
        self.pieces.put_nowait(piece)
        async with asyncio.timeout(5):
            await self.pieces.join()

    async def finish(self) -> int:
        """Send the whole body and its end; returns the status."""
        self.pieces.put_nowait(self.body)
        self.pieces.put_nowait(None)
        async with asyncio.timeout(5):
            return (await self.answer).status_code


@pytest.mark.parametrize(("limit", "most"), [("BODIES", 3), ("BODIES_BYTES", 4000)])
async def test_the_oldest_body_gives_way_to_those_that_arrive(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(bodies, limit, most)
    slow = [Sender(scene, b"", FORGED) for _ in range(3)]
    for each in slow:
        await each.send(b"x" * 1500)
    body, headers = request(message("t1", "hello"), "d1")

    quick = Sender(scene, body, headers)

    async with asyncio.timeout(5):
        assert (await slow[0].answer).status_code == 408
    assert await quick.finish() == 200
    assert [await each.finish() for each in slow[1:]] == [401, 401]


async def test_a_slow_body_runs_out_of_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.01)
    slow = Sender(scene, b"", FORGED)

    async with asyncio.timeout(5):
        answer = await slow.answer

    assert (answer.status_code, answer.headers["connection"]) == (408, "close")
