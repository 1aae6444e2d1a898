"""Following a place: rows in order, and text without a row never after the row that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.feed import Feed, PlaceNews, Unfinished
from app.model.keys import PlaceKey
from app.model.types import Entry, TurnRef
from app.store.stores import Stores
from tests.support.clock import ManualClock
from tests.support.memory import decision, heard, open_stores

pytestmark = pytest.mark.anyio

PLACE = PlaceKey("web", "t1")


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    with open_stores(tmp_path, ManualClock()) as (_, opened):
        yield opened


async def turn(stores: Stores) -> TurnRef:
    (ref,) = (await stores.decisions.accept(decision(heard("go"), "demo"))).turns
    return ref


async def take(news: AsyncIterator[PlaceNews]) -> PlaceNews:
    async with asyncio.timeout(5):
        return await anext(news)


async def test_text_that_has_become_a_row_is_not_shown_again(stores: Stores) -> None:
    ref = await turn(stores)
    feed = Feed(stores.transcript, stores.sessions)
    news = feed.news(PLACE, after=0, idle=5)
    assert [row.kind for row in (await take(news)).rows] == ["message"]

    feed.show(Unfinished(ref.session, ref.turn, "text", "Hel"))
    row = Entry("text", "Hello", session=ref.session, turn=ref.turn)
    await stores.transcript.append([row])
    feed.notify(ref.session)

    assert [row.text for row in (await take(news)).rows] == ["Hello"]
    assert await take(news) == PlaceNews()


async def test_text_without_a_row_is_shown_while_it_grows(stores: Stores) -> None:
    ref = await turn(stores)
    feed = Feed(stores.transcript, stores.sessions)
    news = feed.news(PLACE, after=1, idle=5)
    await take(news)

    feed.show(Unfinished(ref.session, ref.turn, "text", "Hel"))

    assert [each.text for each in (await take(news)).unfinished] == ["Hel"]


async def test_everything_that_happens_anywhere_is_counted(stores: Stores) -> None:
    ref = await turn(stores)
    feed = Feed(stores.transcript, stores.sessions)

    feed.notify(ref.session)
    feed.notify_place(PLACE)

    assert feed.stirs == 2
