"""Signals over PostgreSQL: heard by all others, in order, and again after the server was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.clock import SystemClock
from app.signals import Facts, Topic
from app.store.database import Database
from app.store.database.signals import Notifications
from tests.support.postgres import need_server, server

pytestmark = pytest.mark.anyio


class Told:
    """What a member was told."""

    def __init__(self, member: Notifications) -> None:
        self.facts: list[Facts] = []
        self.sweeps = 0
        self._changed = asyncio.Event()
        member.on(Topic.NEWS, self._take)
        member.on_sweep(self._sweep)

    def _take(self, facts: Facts) -> None:
        self.facts.append(facts)
        self._changed.set()

    def _sweep(self) -> None:
        self.sweeps += 1
        self._changed.set()

    async def until(self, seen: Any) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(30):
            while not seen():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def open_member(owner: Path, name: str) -> AsyncIterator[Notifications]:
    need_server()
    address = server().provide(owner)
    database = Database(address)
    database.open()
    member = Notifications(database, address, name, SystemClock())
    await member.start()
    try:
        yield member
    finally:
        await member.close()
        database.close()


async def test_every_other_member_hears_in_order_and_none_of_another_installation(
    tmp_path: Path,
) -> None:
    async with (
        open_member(tmp_path, "one") as one,
        open_member(tmp_path, "two") as two,
        open_member(tmp_path, "three") as three,
        open_member(tmp_path / "other", "stranger") as stranger,
    ):
        said = [Told(each) for each in (one, two, three, stranger)]
        for number in range(500):
            one.send(Topic.NEWS, session=number)
            one.send(Topic.NEWS, session=number)  # the same twice at once is said once

        two.send(Topic.NEWS, session=-1)
        wanted = [{"session": number} for number in range(500)]
        await said[1].until(lambda: said[1].facts == wanted)
        await said[2].until(lambda: len(said[2].facts) == 501)
        assert [each for each in said[2].facts if each["session"] >= 0] == wanted
        assert said[0].facts == [{"session": -1}]
        assert said[3].facts == []


async def test_after_a_lost_connection_everything_is_looked_at_again(tmp_path: Path) -> None:
    async with open_member(tmp_path, "one") as one, open_member(tmp_path, "two") as two:
        told = Told(two)
        server().run(
            tmp_path,
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'agent-bridge signals' and datname = current_database()",
        )
        one.send(Topic.NEWS, session=1)
        await told.until(lambda: told.sweeps > 0)
        one.send(Topic.NEWS, session=2)
        await told.until(lambda: {"session": 2} in told.facts)


async def test_junk_on_the_channel_is_dropped_in_a_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    junk = [
        *("", "not json", "null", "5", "{}", "[]", '["a"]', '["a", "news"]', '["a", "news", 5]'),
        *('["a", "nonsense", {}]', '["a", "news", {}, 5]', '["a", {}, {}]', '[1, "news", {}]'),
        *('["a", "reply", []]', '["a", "reply", {}, "x"]', '["a", "news", {}, "x", "y"]'),
        *("[" * 7_000, '["a", "news", {"session": NaN}, null]', '"\\ud800"'),
    ]
    async with open_member(tmp_path, "one") as one, open_member(tmp_path, "two") as two:
        told = Told(two)
        for words in junk:
            one.transmit(words)
        one.send(Topic.NEWS, session=1)
        await told.until(lambda: told.facts)

        assert told.facts == [{"session": 1}]
        dropped = [record for record in caplog.records if "none of ours" in record.message]
        assert len(dropped) >= len(junk) - 1
        assert [record for record in caplog.records if record.exc_info] == []


async def test_what_was_said_last_is_sent_before_a_member_ends(tmp_path: Path) -> None:
    async with open_member(tmp_path, "two") as two:
        told = Told(two)
        async with open_member(tmp_path, "one") as one:
            one.send(Topic.NEWS, session=1)
        await told.until(lambda: told.facts == [{"session": 1}])
