"""The intake: whatever arrives is settled, and no place waits for what cannot be kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from app.core.intake.dispatch import ASK_AGAIN_SECONDS, HELD_SECONDS
from app.errors import DeliveryUnreadable, PostDelayed, SpeakerUnknown, StoreUnavailable
from app.model.inbound import Changed, Delivery, Heard, Naming
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.types import PlaceView, Speaker
from app.model.updates import AskOption, AskRequest
from app.store.upkeep import DAY_SECONDS, forget
from tests.support.clock import ManualClock
from tests.support.desk import STRANGER, Desk, Presence, Rules, open_desk, running_desk
from tests.support.memory import ANN, decision, delivery, heard, opened

pytestmark = pytest.mark.anyio

HALF = "\ud83d"
"""The first half of a surrogate pair: JSON may carry it, no database keeps it."""
UNKEPT: Any = 2**70
"""No text, and no number that a database keeps."""
PLACE = PlaceKey("web", "t1")
MAY_I = AskRequest("call", "May I?", (AskOption("yes", "Yes", "allow_once"),))
MAY_I_NOT = replace(MAY_I, options=(*MAY_I.options, AskOption("no", "No", "reject_once")))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, rules=Rules(agents=("demo", "other"))) as desk:
        yield desk


async def test_half_a_surrogate_pair_does_not_wedge_its_place(desk: Desk) -> None:
    poisoned = await desk.hear(replace(heard(f"hello {HALF}"), mentions=("demo",)))
    following = await desk.hear(replace(heard("fine words"), mentions=("demo",)))

    (message, *_) = desk.stores.turns.messages(poisoned.turns[0].turn)
    assert message.text == "hello \ufffd"
    assert len(following.turns) == 1


async def test_a_message_of_which_nothing_can_be_kept_does_not_wedge_its_place(desk: Desk) -> None:
    with pytest.raises(DeliveryUnreadable):
        await desk.hear(replace(heard("hello"), mentions=("demo",), link=UNKEPT))
    failed = await desk.last_delivery()
    following = await desk.hear(replace(heard("fine words"), mentions=("demo",)))

    assert failed.state == "failed"
    assert len(following.turns) == 1


async def test_a_message_whose_decision_was_forgotten_does_not_wedge_its_place(
    desk: Desk,
) -> None:
    first = await desk.hear(replace(heard("hello", message_id="m1"), mentions=("demo",)))
    await desk.reached(first.turns[0].turn, "done")
    in_forty_days = desk.clock.now() + 40 * DAY_SECONDS
    await forget(desk.database, now=in_forty_days, days=30)

    again = await desk.hear(replace(heard("hello", message_id="m1"), mentions=("demo",)))
    following = await desk.hear(replace(heard("next", message_id="m2"), mentions=("demo",)))

    assert again.repeated
    assert len(following.turns) == 1


async def test_the_same_delivery_is_taken_once_however_often_it_is_sent(desk: Desk) -> None:
    sent = delivery("web:demo")
    desk.inbound[sent.delivery_id] = replace(heard("hello"), mentions=("demo",))

    async with asyncio.timeout(5):
        together = await asyncio.gather(*(desk.intake.settle(sent) for _ in range(3)))
        later = await desk.intake.settle(sent)

    assert [len(each.turns) for each in together] == [1, 1, 1]
    assert later.repeated
    session = desk.stores.sessions.in_place(PLACE)[0]
    assert len(await desk.stores.turns.turns(session.id)) == 1


@pytest.mark.parametrize("cause", [StoreUnavailable("full"), asyncio.CancelledError()])
async def test_all_who_wait_for_a_delivery_are_told_that_it_was_not_stored(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, cause: BaseException
) -> None:
    async def take(_delivery: Delivery) -> None:
        await asyncio.sleep(0)
        raise cause

    monkeypatch.setattr(desk.intake, "take", take)
    sent = delivery("web:demo")

    async with asyncio.timeout(5):
        first, second = await asyncio.gather(
            *(desk.intake.settle(sent) for _ in range(2)), return_exceptions=True
        )

    assert type(first) is type(cause)
    assert isinstance(second, StoreUnavailable)


async def test_words_that_reject_an_ask_close_it_and_reach_the_agent(desk: Desk) -> None:
    accepted = await desk.stores.decisions.accept(decision(heard("hello"), "demo"))
    ask, _ = await opened(desk.stores, MAY_I_NOT, accepted.turns[0])

    said = replace(heard("use b.txt instead"), mentions=("demo",), rejects=ask.id)
    answered = await desk.hear(said)

    kept = desk.stores.asks.ask(ask.id)
    assert kept is not None
    assert (kept.state, kept.answer) == ("answered", "no")
    assert answered.answered == (ask.id,)
    (message,) = desk.stores.turns.messages(answered.turns[0].turn)[-1:]
    assert message.text == "use b.txt instead"
    rows = await desk.stores.transcript.read_place(PLACE, after=0, limit=100)
    assert "answers" not in next(row.data for row in rows if row.text == message.text)


async def test_a_message_that_only_answers_an_ask_names_it(desk: Desk) -> None:
    accepted = await desk.stores.decisions.accept(decision(heard("hello"), "demo"))
    ask, _ = await opened(desk.stores, MAY_I, accepted.turns[0])

    await desk.hear(replace(heard("yes"), mentions=("demo",)))

    rows = await desk.stores.transcript.read_place(PLACE, after=0, limit=100)
    assert next(row.data for row in rows if row.text == "yes")["answers"] == [ask.id]


async def test_an_answer_for_an_agent_that_is_gone_is_refused(desk: Desk) -> None:
    accepted = await desk.stores.decisions.accept(decision(heard("hello"), "gone"))
    ask, _ = await opened(desk.stores, MAY_I, accepted.turns[0])

    await desk.answer(ask.id, "yes")

    assert desk.deliveries.settled == [("refused", "gone is no longer here")]
    kept = desk.stores.asks.ask(ask.id)
    assert kept is not None
    assert kept.state == "open"


async def test_an_answer_to_an_ask_that_never_was_is_refused(desk: Desk) -> None:
    await desk.answer(77, "yes")

    assert desk.deliveries.settled == [("refused", "there is no ask 77")]


async def test_an_answer_with_an_absurd_number_is_settled_as_failed(desk: Desk) -> None:
    await desk.answer(2**70, "yes")

    ((state, _),) = desk.deliveries.settled
    assert state == "failed"


@pytest.mark.parametrize("mentions", [(), ("demo",), ("demo", "other")])
@pytest.mark.parametrize("command", ["listen all", "full", "quiet"])
async def test_a_refused_person_changes_nothing_in_a_place(
    desk: Desk, command: str, mentions: tuple[str, ...]
) -> None:
    await desk.hear(replace(heard("hello"), mentions=("demo", "other")))

    accepted = await desk.hear(replace(heard(command, speaker=STRANGER), mentions=mentions))

    assert desk.stores.decisions.place(PLACE) == PlaceView(("demo", "other"), "other")
    assert (await desk.last_delivery()).state == "refused"
    assert len(accepted.posts) == max(1, len(mentions))


async def test_a_stranger_who_calls_commands_is_refused_in_words_once(desk: Desk) -> None:
    await desk.hear(replace(heard("hello"), mentions=("demo", "other")))

    first = await desk.hear(heard("help", speaker=STRANGER))
    second = await desk.hear(heard("status", speaker=STRANGER), by="web:other")

    assert first.posts == second.posts != ()


async def test_whoever_could_not_be_checked_is_told_so_every_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_down(*_: object) -> str | None:
        raise OSError("no route")

    monkeypatch.setattr(Presence, "refusal", is_down)

    first = await desk.hear(replace(heard("hello"), mentions=("demo",)))
    second = await desk.hear(replace(heard("hello again"), mentions=("demo",)))

    assert len({*first.posts, *second.posts}) == 2


async def test_a_refused_person_changes_nothing_where_only_one_agent_is(tmp_path: Path) -> None:
    async with running_desk(tmp_path, clock=ManualClock()) as desk:
        await desk.hear(replace(heard("hello"), mentions=("demo",)))

        await desk.hear(heard("listen all", speaker=STRANGER))

        assert desk.stores.decisions.place(PLACE) == PlaceView(("demo",), "demo")
        assert (await desk.last_delivery()).state == "refused"


@pytest.mark.parametrize("mentions", [(), ("demo",)])
async def test_somebody_who_may_sets_how_a_place_listens(
    desk: Desk, mentions: tuple[str, ...]
) -> None:
    await desk.hear(replace(heard("hello"), mentions=("demo", "other")))

    await desk.hear(replace(heard("listen all"), mentions=mentions))
    await desk.hear(replace(heard("full"), mentions=mentions))

    assert desk.stores.decisions.place(PLACE) == PlaceView(
        ("demo", "other"), "other", "all", "full"
    )


async def test_nothing_is_read_before_its_adapter_is_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(tmp_path) as desk:
        known = asyncio.Event()
        adapter = next(iter(desk.adapters.values()))
        monkeypatch.setattr(adapter, "prepare", known.wait)
        await desk.engine.start()
        desk.intake.start()

        waiting = asyncio.ensure_future(desk.hear(replace(heard("hello"), mentions=("demo",))))
        async with asyncio.timeout(5):
            while not await desk.stores.deliveries.pending(adapter.service_name, 0):
                pass
        assert not waiting.done()
        known.set()

        assert len((await waiting).turns) == 1


async def test_a_name_that_cannot_be_followed_does_not_wedge_the_inbox(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = next(iter(desk.adapters.values()))
    absurd = Naming("web", "example.com", 2**70, "owner/name")
    monkeypatch.setattr(adapter, "naming", lambda _delivery: absurd)

    accepted = await desk.hear(replace(heard("hello"), mentions=("demo",)))

    assert len(accepted.turns) == 1


async def test_what_belongs_to_a_message_is_brought_together_before_it_is_decided(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gather(said: Heard) -> Heard:
        return replace(said, text=f"{said.text} and the rest {HALF}", mentions=("demo", "other"))

    monkeypatch.setattr(next(iter(desk.adapters.values())), "gather", gather)

    accepted = await desk.hear(heard("a part"))

    (message,) = desk.stores.turns.messages(accepted.turns[0].turn)
    assert message.text == "a part and the rest \ufffd"
    assert len(accepted.turns) == 2


def unable(desk: Desk, calls: list[Speaker]) -> None:
    """Let nobody tell who speaks on the platform of the first adapter."""

    async def refusal(speaker: Speaker, place: PlaceKey) -> str | None:
        calls.append(speaker)
        raise SpeakerUnknown(f"nobody can tell who speaks in {place}")

    next(iter(desk.adapters.values())).refusal = refusal  # type: ignore[method-assign]


async def test_a_message_waits_while_nobody_can_tell_who_speaks(tmp_path: Path) -> None:
    clock, calls = ManualClock(), list[Speaker]()
    async with running_desk(tmp_path, clock=clock) as desk:
        unable(desk, calls)
        arrived = replace(delivery("web:demo"), received_at=clock.now())
        desk.inbound[arrived.delivery_id] = replace(heard("hello"), mentions=("demo",))
        waiting = asyncio.ensure_future(desk.intake.settle(arrived))
        await clock.asleep()
        await clock.advance(ASK_AGAIN_SECONDS)
        assert (len(calls), waiting.done()) == (2, False)

        del next(iter(desk.adapters.values())).refusal
        await clock.asleep()
        await clock.advance(ASK_AGAIN_SECONDS)

        assert len((await waiting).turns) == 1


async def test_nothing_waits_where_an_agent_works_since_the_next_word_may_be_stop(
    tmp_path: Path,
) -> None:
    async def hang(_listener: AgentListener) -> None:
        await asyncio.Event().wait()

    clock = ManualClock()
    async with running_desk(tmp_path, clock=clock) as desk:
        desk.launcher.script = hang
        working = await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(working.turns[0].turn, "prompted")
        unable(desk, [])
        arrived = replace(delivery("web:demo"), received_at=clock.now())
        desk.inbound[arrived.delivery_id] = replace(
            heard("and I?", speaker=STRANGER), mentions=("demo",)
        )
        refused = await desk.intake.settle(arrived)
        del next(iter(desk.adapters.values())).refusal

        await desk.hear(replace(heard("stop"), mentions=("demo",)))

        assert refused.turns == ()
        await desk.reached(working.turns[0].turn, "cancelled")


async def test_whoever_waited_too_long_is_refused_and_the_next_message_is_not_held_up(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with running_desk(tmp_path, clock=clock) as desk:
        unable(desk, [])
        arrived = replace(delivery("web:demo"), received_at=clock.now() - HELD_SECONDS)
        desk.inbound[arrived.delivery_id] = replace(heard("hello"), mentions=("demo",))
        accepted = await desk.intake.settle(arrived)
        del next(iter(desk.adapters.values())).refusal

        following = await desk.hear(replace(heard("fine words"), mentions=("demo",)))

        assert (accepted.turns, len(following.turns)) == ((), 1)
        await desk.until(lambda: len(desk.posts()) > 1)
        assert "try again later" in desk.posts()[0].content.note


async def test_a_change_that_cannot_be_read_leaves_a_message_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reread(_changed: Changed) -> Changed | None:
        raise PostDelayed("the platform is down")

    async with open_desk(tmp_path) as desk:
        desk.intake.start()
        adapter = next(iter(desk.adapters.values()))
        monkeypatch.setattr(adapter, "reread", reread)
        said = replace(heard("hello", message_id="m1"), mentions=("demo",))
        (turn,) = (await desk.hear(said)).turns

        await desk.change(Changed(PLACE, "t1", "m1", said.speaker, "bye"))

        assert (await desk.last_delivery()).state == "failed"
        assert [each.text for each in desk.stores.turns.messages(turn.turn)] == ["hello"]


@pytest.mark.parametrize(("kind", "kept"), [("person", "turn left"), ("agent", "!now turn left")])
async def test_only_people_say_when_their_words_are_meant_to_be_read(
    desk: Desk, kind: Literal["person", "agent"], kept: str
) -> None:
    said = heard("!now turn left", speaker=replace(ANN, kind=kind))

    await desk.hear(replace(said, mentions=("demo",)))

    rows = await desk.stores.transcript.read_place(said.place, after=0, limit=100)
    assert [row.text for row in rows if row.kind == "message"] == [kept]
