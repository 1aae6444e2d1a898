"""The front: nothing forged gets in, nothing is acknowledged that was not stored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.clock import SystemClock
from app.core.inbound import Delivery
from app.errors import StoreUnavailable
from app.server import front as front_module
from app.server.front import Front
from app.server.metrics import Metrics
from tests.support.hook import HookAdapter, message, request, sign

pytestmark = pytest.mark.anyio

PATH = "/webhooks/hook/demo"


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
    monkeypatch.setattr(front_module, "BODY_BYTES", 10)
    body, headers = request(message("t1", "hello"))

    answer = await scene.http.post(PATH, content=body, headers=headers)

    assert answer.status_code == 413


async def test_a_body_without_a_length_is_cut_off_at_the_cap(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front_module, "BODY_BYTES", 10)

    async def endless() -> Any:
        for _ in range(3):
            yield b"12345"

    answer = await scene.http.post(PATH, content=endless())

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
