"""Offers: told once, they outlive turns, begin one when taken, and go along with what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.model.asks import LEAVE, TAKE, offer
from app.model.conversations import ListFilter
from app.model.posts import PostContent
from app.model.proposals import Proposed
from app.model.types import SessionState, TurnRef, TurnState
from app.model.updates import Ask
from app.model.workspaces import Checkout, OpenedClone, Repository
from app.store.stores import Stores
from tests.support.clock import ManualClock
from tests.support.memory import decision, heard, open_stores

FIX = offer("agent/demo/1", "Checks failed: build.", "a.py:1: no", "Fix the checks")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stores(tmp_path: Path, clock: ManualClock) -> Iterator[Stores]:
    with open_stores(tmp_path, clock) as (_, opened):
        yield opened


async def proposed(stores: Stores) -> tuple[Proposed, TurnRef]:
    """Let a session propose something in a turn that goes on."""
    accepted = await stores.decisions.accept(decision(heard("hello"), "demo"))
    (ref,) = accepted.turns
    await stores.turns.starting(ref.turn)
    repository = Repository("o/r", "https://git.example/o/r.git")
    await stores.checkouts.begin(Checkout(ref.session, 1, repository, "branch", "agent/demo/1"))
    await stores.checkouts.ready(ref.session, 1, OpenedClone("main", "c0"), "")
    await stores.checkouts.pushed(ref.session, 1, "c1")
    found = stores.proposals.find("demo", "o/r", "agent/demo/1")
    assert found is not None
    return found, ref


async def offered(stores: Stores, mark: str = "failed:c1") -> tuple[Proposed, TurnRef, Ask]:
    mine, ref = await proposed(stores)
    await stores.proposals.tell(mine, mark, "", offer=FIX, deadline=1e12)
    await stores.turns.finish(ref.turn, TurnState.DONE, PostContent(kind="turn", state="done"), ())
    (ask,) = await stores.asks.asks(ListFilter(state="open"), after=0, limit=10)
    return mine, ref, ask


async def test_an_offer_outlives_its_turn_and_nobody_waits_for_it(stores: Stores) -> None:
    _, ref, ask = await offered(stores)
    await stores.turns.recover()

    session = stores.sessions.session(ref.session)
    assert session is not None
    assert session.state is SessionState.PARKED
    assert [each.id for each in stores.asks.open_in(ref.session)] == [ask.id]


async def test_one_that_is_taken_begins_a_turn_with_what_it_is_about_as_data(
    stores: Stores,
) -> None:
    mine, ref, ask = await offered(stores)

    taken = await stores.asks.answer(ask.id, TAKE, "Ann", speaker="U1")

    assert taken is not None
    (begun,) = taken.turns
    (message,) = stores.turns.messages(begun.turn)
    assert (message.text, message.speaker.id, message.speaker.name) == (
        "Fix the checks.",
        "U1",
        "Ann",
    )
    assert message.context == "Checks failed: build.\n```\na.py:1: no\n```"
    known = stores.proposals.find("demo", "o/r", mine.branch)
    assert known is not None
    assert known.tries == 1
    assert begun.session == ref.session
    assert await stores.asks.answer(ask.id, TAKE, "Bob") is None


async def test_one_that_is_taken_is_no_message_that_a_platform_could_be_asked_about(
    stores: Stores,
) -> None:
    _, _, ask = await offered(stores)
    await stores.asks.answer(ask.id, TAKE, "Ann", speaker="U1")

    (place,) = await stores.sessions.active("web", "demo", since=0.0)

    assert place.first_message_id == place.last_message_id
    assert not place.last_message_id.startswith("offer")


async def test_one_that_is_left_begins_nothing(stores: Stores) -> None:
    _, ref, ask = await offered(stores)

    taken = await stores.asks.answer(ask.id, LEAVE, "Ann")

    assert taken is not None
    assert taken.turns == ()
    assert stores.turns.next_turn(ref.session) is None


async def test_news_are_told_once_and_withdraw_what_was_offered_before(stores: Stores) -> None:
    mine, ref, ask = await offered(stores)
    await stores.asks.answer(ask.id, LEAVE, "Ann")

    assert await stores.proposals.tell(mine, "failed:c1", "", offer=FIX, deadline=1e12) == ()
    again = await stores.proposals.tell(mine, "failed:c2", "", offer=FIX, deadline=1e12)
    passed = await stores.proposals.tell(mine, "passed:c3", "Checks passed.", passed=True)

    assert (len(again), len(passed)) == (1, 2)
    assert stores.asks.open_in(ref.session) == []
    last = stores.posts.post(passed[1])
    assert last is not None
    assert (last.content.note, str(last.target)) == ("Checks passed.", "web:t1:demo")


async def test_whatever_else_is_asked_brings_the_offer_along(stores: Stores) -> None:
    _, ref, _ = await offered(stores)

    accepted = await stores.decisions.accept(decision(heard("what is wrong?"), "demo"))

    (next_turn,) = accepted.turns
    (message,) = stores.turns.messages(next_turn.turn)
    assert "a.py:1: no" in message.context
    assert stores.asks.open_in(ref.session) == []


async def test_one_that_nobody_answers_ends_without_a_word(
    stores: Stores, clock: ManualClock
) -> None:
    mine, _ = await proposed(stores)
    await stores.proposals.tell(mine, "x", "", offer=FIX, deadline=clock.now() + 10)
    await clock.advance(11)

    expired = await stores.asks.expire()

    assert (len(expired.asks), len(expired.posts)) == (1, 1)


async def test_what_was_merged_is_not_looked_at_for_conflicts(stores: Stores) -> None:
    mine, _ = await proposed(stores)
    await stores.checkouts.told(mine.session, 1, "c1", "https://git.example/o/r/pull/2")
    assert [each.branch for each in stores.proposals.onto("demo", "o/r", "main")] == [mine.branch]

    await stores.proposals.settle(mine, "merged")

    assert stores.proposals.onto("demo", "o/r", "main") == []
    assert stores.proposals.find("other", "o/r", mine.branch) is None
