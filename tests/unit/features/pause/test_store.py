"""What the store promises about pauses: which turns they hold, and whom they tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.features.pause.store import SuspensionStore
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.model.posts import PostContent
from app.model.types import TurnRef
from app.model.updates import AskOption, AskRequest
from app.store.stores import Stores
from tests.support.memory import decision, heard, open_stores, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with open_stores(tmp_path, SystemClock()) as (_, stores):
        yield stores


async def say(stores: Stores, place: str, agent: str = "demo") -> TurnRef:
    accepted = await stores.decisions.accept(decision(heard("hello", place), agent))
    return accepted.turns[0]


@pytest.mark.parametrize(
    ("scope", "is_held"),
    [
        ("all", True),
        ("agent:demo", True),
        ("agent:dem", False),
        ("place:web:C1:17.1", True),
        ("place:web:C1", True),
        ("place:web:C", False),
        ("place:web:C1:17.10", False),
        ("place:chat:C1:17.1", False),
    ],
)
async def test_a_pause_holds_the_turns_in_its_scope(
    stores: Stores, scope: str, is_held: bool
) -> None:
    before = await say(stores, "C1:17.1")
    told = await stores.open(SuspensionStore).add(scope, "operator")

    assert (stores.turns.next_turn(before.session) is None) == is_held
    assert await stores.turns.starting(before.turn) != is_held
    assert len(told) == is_held

    free = await stores.open(SuspensionStore).remove(scope)
    assert (before in (free or ())) == is_held
    assert await stores.open(SuspensionStore).remove(scope) is None


async def test_a_conversation_is_told_of_a_pause_once_and_of_the_next_one_again(
    stores: Stores,
) -> None:
    counts = []
    for _ in range(2):
        await stores.open(SuspensionStore).add("all", "operator")
        await stores.open(SuspensionStore).add("all", "operator")
        first = await stores.decisions.accept(decision(heard("hello"), "demo"))
        second = await stores.decisions.accept(decision(heard("hello"), "demo"))
        posts = [stores.posts.post(each) for each in (*first.posts, *second.posts)]
        counts.append(sum(each is not None and each.content.kind == "notice" for each in posts))
        ref = first.turns[0]
        await stores.open(SuspensionStore).remove("all")
        assert await stores.turns.starting(ref.turn)

    assert counts == [1, 1]
    rows = await stores.transcript.read(ref.session, after=0, limit=50)
    assert [row.kind for row in rows].count("notice") == 2


async def test_a_turn_that_agents_wait_for_begins_although_everything_is_paused(
    stores: Stores,
) -> None:
    ref = await say(stores, "t1")
    await stores.open(SuspensionStore).add("all", "operator")
    assert stores.turns.next_turn(ref.session) is None

    # Where agents ask agents, people never talk.
    said = replace(heard("hello"), place=PlaceKey(SERVICE, "d1"))
    accepted = await stores.decisions.accept(decision(said, "demo"))

    assert stores.turns.next_turn(accepted.turns[0].session) is not None


async def test_an_answer_that_begins_a_paused_turn_tells_the_person(stores: Stores) -> None:
    ref = await say(stores, "t1")
    assert await stores.turns.starting(ref.turn)
    assert await stores.turns.prompted(ref.turn, "hello", "acp-1", 1)
    options = (AskOption("yes", "Yes", "allow_once"),)
    ask, _ = await opened(stores, AskRequest("call", "May I?", options), ref)
    waiting = PostContent(kind="turn", state="waiting")
    assert await stores.turns.park(ref.turn, waiting, [ask.id])
    await stores.open(SuspensionStore).add("all", "operator")

    taken = await stores.asks.answer(ask.id, "yes", "Ann")

    assert taken is not None
    assert stores.turns.next_turn(ref.session) is None
    notes = [post.content.note for each in taken.posts if (post := stores.posts.post(each))]
    assert sum("has paused" in note for note in notes) == 1
