"""What the store promises about log-ins: a link works once, and an end is an end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.database import Database
from app.store.people import LoginStore
from app.store.tables import login
from tests.support.clock import ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio


class Scene:
    """A store whose time is told by the test."""

    def __init__(self, database: Database, logins: LoginStore, clock: ManualClock) -> None:
        self.database = database
        self.logins = logins
        self.clock = clock

    def after(self, seconds: float) -> float:
        return self.clock.now() + seconds

    async def begun(self, link: str = "link", seconds: float = 1000) -> str:
        await self.logins.offer(link, until=self.after(10))
        name = await self.logins.begin(link, until=self.after(seconds))
        assert name is not None
        return name


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scene(tmp_path: Path, clock: ManualClock) -> Iterator[Scene]:
    with open_stores(tmp_path, clock) as (database, stores):
        yield Scene(database, stores.logins, clock)


async def test_a_link_begins_one_log_in(scene: Scene) -> None:
    name = await scene.begun()

    assert scene.logins.lasts(name)
    assert await scene.logins.begin("link", until=scene.after(1000)) is None
    assert scene.logins.lasts(name)


async def test_of_all_who_open_a_link_at_once_one_gets_in(scene: Scene, tmp_path: Path) -> None:
    await scene.logins.offer("link", until=scene.after(10))

    with open_stores(tmp_path, scene.clock) as (_, others):
        doors = [scene.logins, others.logins] * 10
        names = await asyncio.gather(
            *(door.begin("link", until=scene.after(1000)) for door in doors)
        )

    assert sum(name is not None for name in names) == 1


async def test_an_unknown_link_begins_nothing(scene: Scene) -> None:
    assert await scene.logins.begin("link", until=scene.after(1000)) is None


async def test_a_link_runs_out(scene: Scene) -> None:
    await scene.logins.offer("link", until=scene.after(10))

    await scene.clock.advance(10)

    assert await scene.logins.begin("link", until=scene.after(1000)) is None


async def test_a_log_in_outlasts_its_link_and_runs_out_as_well(scene: Scene) -> None:
    name = await scene.begun(seconds=1000)

    await scene.clock.advance(999)
    before = scene.logins.lasts(name)
    await scene.clock.advance(1)

    assert before
    assert not scene.logins.lasts(name)


async def test_a_link_that_nobody_opened_is_no_log_in(scene: Scene) -> None:
    await scene.logins.offer("link", until=scene.after(10))
    (row,) = await scene.database.all(login.select())

    assert not scene.logins.lasts(row.id)


async def test_a_revoked_log_in_ends_and_others_go_on(scene: Scene) -> None:
    one, other = await scene.begun("one"), await scene.begun("other")

    await scene.logins.revoke(one)

    assert not scene.logins.lasts(one)
    assert scene.logins.lasts(other)


async def test_revoking_all_ends_every_log_in_and_every_link(scene: Scene) -> None:
    names = [await scene.begun("one"), await scene.begun("other")]
    await scene.logins.offer("unopened", until=scene.after(10))

    await scene.logins.revoke_all()

    assert not any(scene.logins.lasts(name) for name in names)
    assert await scene.logins.begin("unopened", until=scene.after(1000)) is None


async def test_what_has_run_out_is_forgotten_with_the_next_link(scene: Scene) -> None:
    await scene.begun("old", seconds=20)
    lasting = await scene.begun("lasting", seconds=1000)
    await scene.clock.advance(20)

    await scene.logins.offer("new", until=scene.after(10))

    rows = await scene.database.all(login.select())
    assert {row.link_hash for row in rows} == {"lasting", "new"}
    assert scene.logins.lasts(lasting)
