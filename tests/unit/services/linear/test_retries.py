"""Linear's retries against the whole way in: front, inbox, intake, on a clock that is driven."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.config import LinearCredentials
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.intake.access import Access
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.session_manager import SessionManager
from app.core.types import Delivery
from app.errors import StoreUnavailable
from app.server.front import Front
from app.server.metrics import Metrics
from app.services.linear.adapter import LinearAdapter
from app.sim.linear import App, Linear, LinearSession
from app.sim.linear.hooks import HookDelivery
from app.store.stores import Stores
from app.vault import Vault
from tests.support.clock import ManualClock
from tests.support.memory import open_stores
from tests.support.no_git import directory
from tests.support.office import Engine

pytestmark = pytest.mark.anyio


@dataclass
class Way:
    """The way in, with an engine that runs nothing."""

    linear: Linear
    clock: ManualClock
    app: App
    engine: Engine
    front: Front
    adapter: LinearAdapter
    intake: Intake
    stores: Stores
    broken: bool = False

    async def take(self, delivery: Delivery) -> None:
        if self.broken:
            raise StoreUnavailable("the disk is full")
        await self.intake.take(delivery)

    async def deliver(self, delivery: HookDelivery) -> int:
        """Send a delivery as Linear does, and let Linear know the answer."""
        transport = httpx.ASGITransport(self.front)
        async with httpx.AsyncClient(transport=transport, base_url="http://bridge.test") as http:
            answer = await http.post(
                "/webhooks/linear", content=delivery.body, headers=dict(delivery.headers)
            )
        delivery.answers.append(answer.status_code)
        return answer.status_code

    async def until(self, due: float | None) -> None:
        """Let time pass until a delivery is sent again."""
        assert due is not None
        await self.clock.advance(due - self.clock.now())

    async def acknowledged(self, session: LinearSession) -> None:
        """Wait until the session has its first activity, hence its turn."""
        await asyncio.to_thread(self.linear.wait, lambda: bool(session.activities))


@asynccontextmanager
async def way_in(folder: Path) -> AsyncIterator[Way]:
    clock, vault, metrics, engine = ManualClock(), Vault(), Metrics(), Engine()
    with Linear(clock.now) as linear, open_stores(folder, clock) as (_, stores):
        app = linear.agent("demo")
        adapter = LinearAdapter(
            "demo",
            LinearCredentials(
                webhook_secret=SecretStr(app.webhook_secret),
                access_token=SecretStr(next(iter(app.tokens))),
            ),
            api_url=linear.url,
            clock=clock,
            vault=vault,
            is_default=True,
        )
        adapters: Any = {"linear:demo": adapter}
        feed = Feed(stores.transcript, stores.sessions)
        outbox = Outbox(stores.posts, adapters, clock, vault, metrics)
        live: Any = None
        manager = SessionManager(
            stores.decisions,
            stores.sessions,
            stores.turns,
            engine=engine,
            live=live,
            outbox=outbox,
            feed=feed,
            clock=clock,
            directory=directory(folder),
        )
        intake = Intake(
            stores.deliveries,
            stores.decisions,
            manager,
            Ledger(
                stores.asks,
                stores.sessions,
                outbox,
                feed,
                vault,
                clock=clock,
                submit=engine.submit,
            ),
            adapters=adapters,
            access=Access(),
            untagged="mention",
            clock=clock,
        )
        front = Front(_nowhere, lambda delivery: way.take(delivery), clock, hosts=["bridge.test"])
        front.open([adapter])
        way = Way(linear, clock, app, engine, front, adapter, intake, stores)
        intake.start()
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(adapter.listen(way.take))
            await clock.asleep(2)
            yield way
            listening.cancel()
        await intake.close()
        await outbox.close(grace=0)
        await adapter.close()


async def _nowhere(*_: object) -> None:
    raise AssertionError("this is no webhook")


async def test_what_could_not_be_kept_is_found_when_linear_repeats_it_and_only_once(
    tmp_path: Path,
) -> None:
    async with way_in(tmp_path) as way:
        way.broken = True
        issue = way.linear.issue("Do this")
        session = way.linear.delegate(issue, way.app, way.linear.person("Ann"))
        (delivery,) = way.linear.hooks.sent
        assert await way.deliver(delivery) == 503
        way.broken = False

        await way.until(delivery.due)  # a minute later
        await way.clock.advance(1.0)
        assert await way.deliver(delivery) == 400
        await way.acknowledged(session)

        await way.until(delivery.due)  # an hour later
        assert await way.deliver(delivery) == 400
        await way.clock.asleep(2)  # it has looked again
        rows = await way.stores.deliveries.recent(before=None, limit=10)

        assert way.engine.submitted == [1]
        assert [row.state for row in rows] == ["done"]


async def test_what_was_acknowledged_is_not_repeated_by_linear_nor_by_looking(
    tmp_path: Path,
) -> None:
    async with way_in(tmp_path) as way:
        issue = way.linear.issue("Do this")
        session = way.linear.delegate(issue, way.app, way.linear.person("Ann"))
        (delivery,) = way.linear.hooks.sent
        assert await way.deliver(delivery) == 200
        assert await way.deliver(delivery) == 200
        await way.acknowledged(session)

        assert delivery.due is None
        assert way.engine.submitted == [1]
