"""What the store promises about messages and turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.model.inbound import Effect
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostContent
from app.model.types import Entry, SessionState, Speaker, TurnRef, TurnState
from app.model.updates import AskOption, AskRequest
from app.store.stores import Stores
from tests.support.memory import decision, delivery, heard, open_stores, opened

pytestmark = pytest.mark.anyio

DONE = PostContent(kind="turn", state="done", text="ready")
KEY = SessionKey("web", "t1", "demo")
FAR = 4e9


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with open_stores(tmp_path, SystemClock()) as (_, stores):
        yield stores


async def begun(stores: Stores, text: str = "hello") -> TurnRef:
    (ref,) = (await stores.decisions.accept(decision(heard(text), "demo"))).turns
    assert await stores.turns.starting(ref.turn)
    return ref


async def prompted(stores: Stores, text: str = "hello") -> TurnRef:
    ref = await begun(stores, text)
    assert await stores.turns.prompted(ref.turn, text, "acp-1", 1)
    return ref


async def test_a_delivery_is_kept_once_by_id_and_by_signature(stores: Stores) -> None:
    first = delivery(body=b"one", delivery_id="d1", signature="s1")
    await stores.deliveries.add(first)
    await stores.deliveries.add(delivery(body=b"one", delivery_id="d1", signature="s2"))
    await stores.deliveries.add(delivery(body=b"one", delivery_id="d2", signature="s1"))
    await stores.deliveries.add(delivery(body=b"two", delivery_id="d2", signature="s2"))

    pending = await stores.deliveries.pending("web:demo", 0)

    assert [each.body for each in pending] == [b"one", b"two"]


async def test_the_same_bytes_for_two_adapters_are_two_deliveries(stores: Stores) -> None:
    await stores.deliveries.add(delivery("web:demo", signature="s1"))
    await stores.deliveries.add(delivery("web:other", signature="s1"))

    assert len(await stores.deliveries.pending("web:demo", 0)) == 1
    assert len(await stores.deliveries.pending("web:other", 0)) == 1


async def test_a_message_is_decided_once_whoever_hears_it(stores: Stores) -> None:
    said = heard("hello")

    first = await stores.decisions.accept(decision(said, "demo"))
    second = await stores.decisions.accept(decision(said, "demo"))

    assert len(first.turns) == 1
    assert second.repeated
    assert second.turns == ()
    assert stores.decisions.decided(said.place, said.message_id)


async def test_messages_that_wait_are_joined_with_their_speakers(stores: Stores) -> None:
    await prompted(stores, "first")
    bob = Speaker("bob", "Bob")
    one = await stores.decisions.accept(decision(heard("second"), "demo"))
    two = await stores.decisions.accept(decision(heard("third", speaker=bob), "demo"))

    assert one.turns == two.turns
    messages = stores.turns.messages(one.turns[0].turn)
    assert [(each.speaker.name, each.text) for each in messages] == [
        ("Ann", "second"),
        ("Bob", "third"),
    ]


async def test_a_message_for_two_agents_is_stored_once_and_makes_two_turns(stores: Stores) -> None:
    accepted = await stores.decisions.accept(decision(heard("both of you"), "demo", "other"))

    assert len({ref.session for ref in accepted.turns}) == 2
    for ref in accepted.turns:
        (row,) = await stores.transcript.read(ref.session, after=0, limit=10)
        assert row.text == "both of you"
    assert set(stores.decisions.place(heard("").place).present) == {"demo", "other"}


async def test_a_turn_ends_once(stores: Stores) -> None:
    ref = await prompted(stores)

    assert await stores.turns.finish(ref.turn, TurnState.DONE, DONE, ())
    assert await stores.turns.finish(ref.turn, TurnState.FAILED, DONE, (), "late") is None

    turn = stores.turns.turn(ref.turn)
    assert turn is not None
    assert turn.state == TurnState.DONE


async def test_a_stopped_turn_is_never_prompted(stores: Stores) -> None:
    ref = await begun(stores)
    await stores.decisions.change(heard("").place, [Effect("stop", ref.session)])

    assert not await stores.turns.prompted(ref.turn, "hello", "acp-1", 1)


async def test_stop_holds_what_waits_and_the_next_message_releases_it(stores: Stores) -> None:
    ref = await prompted(stores)
    await stores.decisions.accept(decision(heard("waits"), "demo"))
    await stores.decisions.change(heard("").place, [Effect("stop", ref.session)])
    await stores.turns.finish(ref.turn, TurnState.CANCELLED, DONE, ())
    assert stores.turns.next_turn(ref.session) is None

    await stores.decisions.accept(decision(heard("go on"), "demo"))

    turn = stores.turns.next_turn(ref.session)
    assert turn is not None
    assert [each.text for each in stores.turns.messages(turn.id)] == ["waits", "go on"]


async def test_stop_before_a_turn_began_ends_it_where_people_see_it(stores: Stores) -> None:
    accepted = await stores.decisions.accept(decision(heard("never mind"), "demo"))
    (ref,) = accepted.turns

    posts = await stores.decisions.change(heard("").place, [Effect("stop", ref.session)])

    post = stores.posts.post(posts[0])
    assert post is not None
    assert post.content.state == "stopped"
    assert not await stores.turns.starting(ref.turn)


async def test_dropping_ends_everything_that_waits(stores: Stores) -> None:
    ref = await prompted(stores)
    await stores.decisions.accept(decision(heard("waits"), "demo"))

    await stores.decisions.change(heard("").place, [Effect("drop", ref.session)])

    assert stores.turns.waiting(ref.session) == 0


async def test_a_turn_cut_off_before_the_prompt_runs_again(stores: Stores) -> None:
    ref = await begun(stores)

    assert await stores.turns.recover() == [ref]

    turn = stores.turns.next_turn(ref.session)
    assert turn is not None
    assert (turn.cuts, turn.continued) == (0, False)


async def test_a_turn_cut_off_after_the_prompt_is_continued_once(stores: Stores) -> None:
    ref = await prompted(stores)

    await stores.turns.recover()

    turn = stores.turns.next_turn(ref.session)
    assert turn is not None
    assert (turn.cuts, turn.continued) == (1, True)


async def test_a_second_cut_is_a_visible_failure(stores: Stores) -> None:
    ref = await prompted(stores)
    await stores.turns.recover()
    await stores.turns.starting(ref.turn)
    await stores.turns.prompted(ref.turn, "again", "acp-1", 1)

    assert await stores.turns.recover() == []

    post = stores.posts.of_turn(ref.turn)
    assert post is not None
    assert (post.state, post.content.state) == ("closing", "failed")
    assert "twice" in post.content.note


async def test_a_polite_shutdown_is_no_cut(stores: Stores) -> None:
    ref = await prompted(stores)

    await stores.turns.interrupt(ref.turn)

    turn = stores.turns.next_turn(ref.session)
    assert turn is not None
    assert (turn.cuts, turn.continued) == (0, True)


async def test_a_new_message_does_not_mix_with_a_turn_that_was_cut_off(stores: Stores) -> None:
    ref = await prompted(stores)
    await stores.turns.recover()

    (new,) = (await stores.decisions.accept(decision(heard("more"), "demo"))).turns

    assert new.turn != ref.turn


async def test_open_asks_are_lost_at_a_restart_and_their_posts_say_so(stores: Stores) -> None:
    ref = await prompted(stores)
    request = AskRequest("c1", "Run it?", (AskOption("yes", "Yes", "allow_once"),))
    ask, post_id = await opened(stores, request, ref)

    await stores.turns.recover()

    lost = stores.asks.ask(ask.id)
    post = stores.posts.post(post_id)
    assert lost is not None
    assert lost.state == "lost"
    assert await stores.asks.answer(ask.id, "yes", "Ann") is None
    assert post is not None
    assert "restarted" in post.content.note


async def test_an_ask_is_answered_once(stores: Stores) -> None:
    ref = await prompted(stores)
    request = AskRequest("c1", "Run it?", (AskOption("yes", "Yes", "allow_once"),))
    ask, _ = await opened(stores, request, ref)

    assert await stores.asks.answer(ask.id, "yes", "Ann") is not None
    assert await stores.asks.answer(ask.id, "yes", "Bob") is None

    answered = stores.asks.ask(ask.id)
    assert answered is not None
    assert answered.answered_by == "Ann"


async def test_the_state_of_a_session_is_read_off_what_is_going_on(stores: Stores) -> None:
    def state() -> SessionState:
        session = stores.sessions.find(KEY)
        assert session is not None
        return session.state

    (ref,) = (await stores.decisions.accept(decision(heard("hello"), "demo"))).turns
    assert state() == SessionState.QUEUED
    await stores.turns.starting(ref.turn)
    assert state() == SessionState.WORKING
    await stores.turns.prompted(ref.turn, "hello", "acp-1", 1)
    request = AskRequest("c1", "Run it?", (AskOption("yes", "Yes", "allow_once"),))
    ask, _ = await opened(stores, request, ref)
    assert state() == SessionState.WAITING
    await stores.asks.answer(ask.id, "yes", "Ann")
    await stores.turns.finish(ref.turn, TurnState.DONE, DONE, ())
    assert state() == SessionState.PARKED
    await stores.sessions.remove(ref.session)
    assert state() == SessionState.REMOVED


async def test_a_removed_session_begins_afresh_when_somebody_speaks_again(stores: Stores) -> None:
    ref = await prompted(stores)
    await stores.turns.finish(ref.turn, TurnState.DONE, DONE, ())
    await stores.sessions.remove(ref.session)

    (again,) = (await stores.decisions.accept(decision(heard("hello again"), "demo"))).turns

    session = stores.sessions.session(again.session)
    assert again.session == ref.session
    assert session is not None
    assert (session.acp_session_id, session.generation) == (None, 2)


async def test_history_is_what_was_said_before_a_turn(stores: Stores) -> None:
    first = await prompted(stores, "my name is Ann")
    answer = Entry("text", "Hello Ann", session=first.session, turn=first.turn)
    await stores.turns.finish(first.turn, TurnState.DONE, DONE, [answer])
    second = await begun(stores, "who am I?")

    history = await stores.transcript.history(first.session, before_turn=second.turn, limit=10)

    assert [entry.text for entry in history] == ["my name is Ann", "Hello Ann"]


async def test_an_ask_that_was_kept_while_its_turn_was_parked_goes_on_with_the_other(
    stores: Stores,
) -> None:
    ref = await prompted(stores)
    options = (AskOption("yes", "Yes", "allow_once"),)
    known, unknown = [
        await stores.asks.open(
            AskRequest(name, name, options, arguments_hash=name), ref, deadline=FAR
        )
        for name in ("known", "unknown")
    ]
    assert known is not None
    assert unknown is not None

    assert await stores.turns.park(ref.turn, DONE, [known.ask.id])
    taken = await stores.asks.answer(known.ask.id, "yes", "Ann")

    assert taken is not None
    (successor,) = taken.turns
    left = stores.asks.ask(unknown.ask.id)
    assert left is not None
    assert (left.state, left.turn) == ("open", successor.turn)


async def with_an_ask_left(stores: Stores) -> tuple[TurnRef, int]:
    """Begin the turn that goes on with one that was parked, with another ask still open."""
    ref = await prompted(stores)
    options = (AskOption("yes", "Yes", "allow_once"),)
    asks = [
        await stores.asks.open(
            AskRequest(name, name, options, arguments_hash=name), ref, deadline=FAR
        )
        for name in ("one", "other")
    ]
    one, other = [each.ask.id for each in asks if each is not None]
    assert await stores.turns.park(ref.turn, DONE, [one, other])
    taken = await stores.asks.answer(one, "yes", "Ann")
    assert taken is not None
    (successor,) = taken.turns
    return successor, other


async def test_what_a_dropped_turn_was_to_ask_again_is_not_asked_any_more(stores: Stores) -> None:
    successor, other = await with_an_ask_left(stores)

    await stores.decisions.change(PlaceKey("web", "t1"), [Effect("drop", successor.session)])

    left = stores.asks.ask(other)
    assert left is not None
    assert left.state == "cancelled"


async def test_what_a_turn_was_to_ask_again_ends_with_it_when_it_was_stopped_in_a_crash(
    stores: Stores,
) -> None:
    successor, other = await with_an_ask_left(stores)
    assert await stores.turns.starting(successor.turn)
    await stores.decisions.change(PlaceKey("web", "t1"), [Effect("stop", successor.session)])

    await stores.turns.recover()

    left = stores.asks.ask(other)
    assert left is not None
    assert left.state == "cancelled"
