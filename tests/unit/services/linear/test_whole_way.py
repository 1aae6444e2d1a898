"""Linear against the whole way in and out: front, inbox, turns, on a clock that is driven."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from app.acp.elicitation import consent
from app.errors import AgentLoginNeeded, StoreUnavailable
from app.metrics import Metrics
from app.model.inbound import Delivery
from app.model.ports import AgentListener
from app.model.updates import TextUpdate
from app.server.front import Front
from app.services.linear.adapter import LinearAdapter
from app.services.linear.settings import LinearCredentials
from app.vault import Vault
from sim.linear import App, Linear, LinearSession
from sim.linear.hooks import HookDelivery
from tests.support.clock import ManualClock
from tests.support.desk import Desk, at_once, running_desk

pytestmark = pytest.mark.anyio

TRACKER = "https://tracker.example.com/oauth?app=1"


@dataclass
class Way:
    """A desk with an agent on Linear."""

    linear: Linear
    clock: ManualClock
    app: App
    front: Front
    desk: Desk
    adapter: LinearAdapter
    broken: bool = False

    async def take(self, delivery: Delivery) -> None:
        if self.broken:
            raise StoreUnavailable("the disk is full")
        await self.desk.intake.take(delivery)

    async def look(self) -> None:
        """Take what Linear shows, as the bridge does after a late delivery."""
        for source in await self.adapter.sources():
            async for delivery in source.find(0.0):
                await self.take(delivery)

    async def deliver(self, delivery: HookDelivery) -> int:
        """Send a delivery as Linear does, and let Linear know the answer."""
        transport = httpx.ASGITransport(self.front)
        async with httpx.AsyncClient(transport=transport, base_url="http://bridge.test") as http:
            answer = await http.post(
                "/webhooks/linear", content=delivery.body, headers=dict(delivery.headers)
            )
        delivery.answers.append(answer.status_code)
        return answer.status_code

    async def delegate(self) -> tuple[LinearSession, HookDelivery]:
        """Give a new issue to the agent; its webhook is still to be delivered."""
        issue = self.linear.issue("Do this")
        session = self.linear.delegate(issue, self.app, self.linear.person("Ann"))
        return session, self.linear.hooks.sent[-1]

    async def until(self, due: float | None) -> None:
        """Let time pass until a delivery is sent again."""
        assert due is not None
        await self.clock.advance(due - self.clock.now())

    async def shown(self, session: LinearSession, status: str) -> None:
        """Wait until people see a session like that."""
        await asyncio.to_thread(self.linear.wait, lambda: session.status == status)


@asynccontextmanager
async def way_in(folder: Path) -> AsyncIterator[Way]:
    clock = ManualClock()
    with Linear(clock.now) as linear:
        async with run(folder, clock, linear, linear.agent("demo")) as way:
            yield way


@asynccontextmanager
async def run(folder: Path, clock: ManualClock, linear: Linear, app: App) -> AsyncIterator[Way]:
    """Run a bridge on a folder until it is over."""
    adapter = LinearAdapter(
        "demo",
        LinearCredentials(
            webhook_secret=SecretStr(app.webhook_secret),
            access_token=SecretStr(next(iter(app.tokens))),
        ),
        api_url=linear.url,
        clock=clock,
        vault=Vault(),
        paths=("/webhooks/linear",),
    )
    front = Front(
        _nowhere, lambda delivery: way.take(delivery), clock, Metrics(), hosts=["bridge.test"]
    )
    front.open([adapter])
    async with running_desk(folder, clock=clock, guests=[adapter]) as desk:
        way = Way(linear, clock, app, front, desk, adapter)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(adapter.listen(way.take))
            await clock.asleep()
            yield way
            listening.cancel()
    await adapter.close()


async def _nowhere(*_: object) -> None:
    raise AssertionError("this is no webhook")


async def test_the_agent_starts_after_its_first_word_has_arrived(tmp_path: Path) -> None:
    async with way_in(tmp_path) as way:
        way.linear.held = {"agentActivityCreate"}
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200

        await way.clock.asleep(2)  # the turn has begun and waits
        await asyncio.to_thread(way.linear.wait, lambda: bool(way.linear.waiting))
        assert way.desk.launcher.lines == []

        way.linear.release("agentActivityCreate")
        await way.shown(session, "complete")

        assert session.activities[0].body == "On it."
        assert way.desk.launcher.told("prompt")


async def test_a_linear_that_is_down_keeps_no_agent_from_starting(tmp_path: Path) -> None:
    async with way_in(tmp_path) as way:
        way.linear.held = {"agentActivityCreate"}
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        await way.clock.asleep(2)

        await way.clock.advance(10.0)
        await way.desk.reached(1, "done")
        way.linear.release("agentActivityCreate")

        await way.shown(session, "complete")


async def test_an_account_is_linked_where_the_agent_says_and_the_work_goes_on(
    tmp_path: Path,
) -> None:
    async def link_first(listener: AgentListener) -> None:
        answer = await listener.on_ask(consent("Link your tracker.", url=TRACKER))
        await listener.on_update(TextUpdate(f"{answer}, thank you"))

    async with way_in(tmp_path) as way:
        way.desk.launcher.script = link_first
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        await way.shown(session, "awaitingInput")
        way.linear.reply(session, way.linear.person("Ann"), "done")
        assert await way.deliver(way.linear.hooks.sent[-1]) == 200
        await way.shown(session, "complete")

        (question,) = session.of_type("elicitation")
        assert question.signal == "auth"
        assert question.signal_metadata == {"url": TRACKER, "providerName": "tracker.example.com"}
        assert question.body.endswith("Then reply `Done` or `Decline` here.")
        assert session.response == "done, thank you"


async def test_an_agent_that_is_not_logged_in_asks_with_the_command_and_goes_on_when_told(
    tmp_path: Path,
) -> None:
    async def refuse() -> None:
        raise AgentLoginNeeded("demo", -32000, "Authentication required")

    async with way_in(tmp_path) as way:
        way.desk.launcher.opening = refuse
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        await way.shown(session, "awaitingInput")
        way.desk.launcher.opening = at_once
        way.linear.pick(session, way.linear.person("Ann"), "Continue")
        assert await way.deliver(way.linear.hooks.sent[-1]) == 200
        await way.shown(session, "complete")

        (question,) = session.of_type("elicitation")
        assert question.signal == "select"  # it is the operator's account, nobody else's
        assert "agent-bridge agents login demo" in question.body
        assert session.response == "ok"


async def test_what_could_not_be_kept_is_found_when_linear_repeats_it_and_only_once(
    tmp_path: Path,
) -> None:
    async with way_in(tmp_path) as way:
        way.broken = True
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 503
        way.broken = False

        await way.until(delivery.due)  # a minute later
        await way.clock.advance(1.0)
        assert await way.deliver(delivery) == 200
        await way.look()
        await way.shown(session, "complete")

        await way.clock.advance(3600.0)  # as if the answer had been lost
        assert await way.deliver(delivery) == 200
        await way.look()
        rows = await way.desk.stores.deliveries.recent(before=None, limit=10)

        assert len(way.desk.launcher.told("prompt")) == 1
        assert [row.state for row in rows] == ["done"]


async def test_what_was_acknowledged_is_dealt_with_once_however_late_the_bridge_is_back(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    with Linear(clock.now) as linear:
        app = linear.agent("demo")
        async with run(tmp_path, clock, linear, app) as way:
            # As a bridge leaves it that dies right after the acknowledgement.
            await way.desk.intake.close()
            session, delivery = await way.delegate()
            assert await way.deliver(delivery) == 200
        await clock.advance(3 * 3600.0)
        assert session.activities == []

        async with run(tmp_path, clock, linear, app) as later:
            await later.shown(session, "complete")

            assert session.activities[0].body == "On it."
            assert session.response == "ok"
            assert len(later.desk.launcher.told("prompt")) == 1


async def test_what_arrives_while_no_token_works_is_answered_once_one_does(
    tmp_path: Path,
) -> None:
    async with way_in(tmp_path) as way:
        tokens = dict(way.app.tokens)
        way.app.tokens.clear()
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        await way.clock.asleep(2)  # it waits to be asked about again
        assert session.activities == []

        way.app.tokens.update(tokens)
        await way.clock.advance(60.0)
        await way.shown(session, "complete")

        assert session.response == "ok"
        assert len(way.desk.launcher.told("prompt")) == 1


async def test_what_arrives_before_it_is_known_who_the_agent_is_waits_and_is_then_checked(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    with Linear(clock.now) as linear:
        app = linear.agent("demo")
        linear.down = True
        async with run(tmp_path, clock, linear, app) as way:
            session, delivery = await way.delegate()
            genuine = json.loads(delivery.body)
            strange = linear.hooks.send(app, {**genuine, "organizationId": "another"})
            assert [await way.deliver(each) for each in (strange, delivery)] == [200, 200]
            linear.down = False
            await clock.advance(60.0)
            await way.shown(session, "complete")
            rows = await way.desk.stores.deliveries.recent(before=None, limit=10)

            by_name = {row.delivery_id: (row.state, row.reason) for row in rows}
            refused = by_name[strange.headers["Linear-Delivery"]]
            assert refused == ("failed", "webhook belongs to another organisation")
            assert len(way.desk.launcher.told("prompt")) == 1


async def test_who_was_just_heard_can_still_say_stop_while_linear_cannot_be_asked(
    tmp_path: Path,
) -> None:
    async def hang(_listener: AgentListener) -> None:
        await asyncio.Event().wait()

    async with way_in(tmp_path) as way:
        way.desk.launcher.script = hang
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        await way.desk.until(lambda: bool(way.desk.launcher.told("prompt")))
        await way.clock.advance(301.0)  # by now it would be asked again whether Ann is a member
        way.linear.limited_until = way.clock.now() + 1800.0
        assert session.creator is not None
        way.linear.stop(session, session.creator)

        assert await way.deliver(way.linear.hooks.sent[-1]) == 200
        await way.desk.reached(1, "cancelled")


async def test_what_was_acknowledged_is_not_repeated_by_linear_nor_by_looking(
    tmp_path: Path,
) -> None:
    async with way_in(tmp_path) as way:
        session, delivery = await way.delegate()
        assert await way.deliver(delivery) == 200
        assert await way.deliver(delivery) == 200
        await way.shown(session, "complete")

        assert delivery.due is None
        assert len(way.desk.launcher.told("prompt")) == 1
