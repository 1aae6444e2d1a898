"""Turns that wait until somebody says go on: a provider's limit, a log-in, a spent budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.core.repo_provider import RepoProvider
from app.core.turns.agents import STARTS
from app.core.turns.limits import DailyLimits
from app.errors import AgentRefused
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.proposals import Work
from app.model.types import Session, SessionState, Speaker, TurnState
from app.model.updates import TextUpdate, UsageUpdate
from app.model.workspaces import Checkout, Repository, Shipped, Target
from app.store.spending import Share
from app.store.turns import TurnStore
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Presence, Rules, Script, running_desk, say_ok
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

GO_ON, CANCEL = "bridge:go-on", "bridge:cancel"


def to_demo(text: str) -> Heard:
    return replace(heard(text), mentions=("demo",))


def once(error: AgentRefused) -> Script:
    """Make an agent that answers with an error, and then works."""
    errors = [error]

    async def script(listener: AgentListener) -> None:
        if errors:
            raise errors.pop()
        await listener.on_update(TextUpdate("worked"))

    return script


LIMITED = AgentRefused("demo", -32603, "Usage limit reached; it resets in 600 seconds.")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock) as desk:
        yield desk


async def asked(desk: Desk, number: int = 1) -> str:
    """Wait until so many asks were shown, and read the last."""

    def seen() -> list[str]:
        return [p.content.text for p in desk.posts() if p.op == "create" and p.content.ask]

    await desk.until(lambda: len(seen()) >= number)
    return seen()[-1]


async def test_a_limited_turn_waits_and_goes_on_when_somebody_says_so(desk: Desk) -> None:
    desk.launcher.script = once(LIMITED)
    await desk.hear(to_demo("work"))

    words = await asked(desk)
    assert "demo hit its usage limit. It resets at" in words
    assert desk.session().state == SessionState.LIMITED
    assert desk.turn(1).state == TurnState.QUEUED

    await desk.answer(1, GO_ON)
    await desk.reached(1, "done")

    assert "continuation" in desk.launcher.told("prompt")[1]
    assert desk.session().state != SessionState.LIMITED


async def test_what_comes_behind_a_limited_turn_waits_too_and_the_place_is_told_once(
    desk: Desk,
) -> None:
    desk.launcher.script = once(LIMITED)
    await desk.hear(to_demo("work"))
    await asked(desk)
    await desk.hear(to_demo("and this"))
    assert desk.turn(2).state == TurnState.QUEUED

    await desk.answer(1, GO_ON)
    await desk.reached(2, "done")

    assert desk.turn(1).state == TurnState.DONE
    assert len(await desk.ledger.list(after=0, limit=9)) == 1


async def test_a_limited_turn_goes_on_by_itself_only_if_that_is_set(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=Rules(resume=True)) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        assert "and continues then." in await asked(desk)
        await clock.asleep(2)
        await clock.advance(590)
        assert desk.turn(1).state == TurnState.QUEUED

        await clock.advance(11)
        await desk.reached(1, "done")

        ask = desk.stores.asks.ask(1)
        assert ask is not None
        assert ask.answered_by == "the bridge"


async def test_a_limit_is_waited_for_across_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    async with running_desk(tmp_path, clock=clock, rules=Rules(resume=True)) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        await asked(desk)
    async with running_desk(tmp_path, clock=clock, rules=Rules(resume=True)) as desk:
        assert desk.session().state == SessionState.LIMITED
        await clock.asleep()

        await clock.advance(601)

        await desk.reached(1, "done")


@pytest.mark.parametrize("way", ["button", "stop"])
async def test_a_limited_turn_can_be_cancelled(desk: Desk, way: str) -> None:
    desk.launcher.script = once(LIMITED)
    await desk.hear(to_demo("work"))
    await asked(desk)

    cancel = {"button": desk.answer(1, CANCEL), "stop": desk.hear(to_demo("stop"))}
    await cancel.pop(way)
    next(iter(cancel.values())).close()
    await desk.reached(1, "cancelled")

    assert desk.session().state != SessionState.LIMITED
    await desk.hear(to_demo("again"))
    await desk.reached(2, "done")


THREE = Rules(agents=("demo", "second", "third"), names={"second": "Second Hand"})


def offered(desk: Desk) -> list[str]:
    ask = desk.stores.asks.ask(1)
    assert ask is not None
    return [option.id for option in ask.options]


@pytest.mark.parametrize("way", ["button", "words"])
async def test_a_limited_agent_can_hand_over_to_a_colleague(
    tmp_path: Path, clock: ManualClock, way: str
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=THREE) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        await asked(desk)
        assert offered(desk)[2:] == ["bridge:hand-over:second", "bridge:hand-over:third"]

        hand = {
            "button": desk.answer(1, "bridge:hand-over:second"),
            "words": desk.hear(heard("Give it to Second Hand")),
        }
        await hand.pop(way)
        next(iter(hand.values())).close()
        await desk.reached(2, "done")

        assert desk.turn(1).state == TurnState.CANCELLED
        assert desk.turn(2).surface.agent == "second"
        assert desk.launcher.told("prompt")[1].endswith("work")
        assert "continuation" not in desk.launcher.told("prompt")[1]
        ends = [post.content.note for post in desk.posts() if post.op == "finish"]
        assert any("Handed over to Second Hand." in note for note in ends)
        await desk.hear(heard("more"))
        await desk.reached(3, "done")
        assert desk.turn(3).surface.agent == "second"


async def test_only_those_who_may_use_the_colleague_hand_over_to_it(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse_second(self: Presence, _speaker: Speaker, _place: PlaceKey) -> str | None:
        return "you may not use this agent here" if self.agent == "second" else None

    async with running_desk(tmp_path, clock=clock, rules=THREE) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        await asked(desk)
        monkeypatch.setattr(Presence, "refusal", refuse_second)

        await desk.answer(1, "bridge:hand-over:second")

        assert desk.deliveries.settled == [("refused", "you may not use this agent here")]
        assert desk.turn(1).state == TurnState.QUEUED


async def test_who_was_told_already_is_not_handed_over_to(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=THREE) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(replace(heard("work"), mentions=("demo", "third")))
        await desk.until(lambda: desk.stores.asks.ask(1) is not None)

        assert offered(desk)[2:] == ["bridge:hand-over:second"]


async def test_a_hidden_agent_is_not_offered_as_a_colleague(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=replace(THREE, hidden=("third",))) as desk:
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        await asked(desk)

        assert offered(desk)[2:] == ["bridge:hand-over:second"]


async def test_nobody_else_can_take_over_in_a_conversation_of_one_agent(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=THREE) as desk:
        for presence in desk.adapters.values():
            presence.shared = False
        desk.launcher.script = once(LIMITED)
        await desk.hear(to_demo("work"))
        await asked(desk)

        assert offered(desk) == [GO_ON, CANCEL]


async def test_a_missing_login_is_asked_for_and_no_failure(desk: Desk) -> None:
    desk.launcher.script = once(AgentRefused("demo", -32000, "Authentication required"))
    await desk.hear(to_demo("work"))

    assert "`agent-bridge agents login demo`" in await asked(desk)
    assert desk.session().state == SessionState.WAITING
    await desk.answer(1, GO_ON)

    await desk.reached(1, "done")


async def test_a_login_that_is_missing_at_the_start_is_asked_for_too(desk: Desk) -> None:
    async def locked() -> None:
        raise AgentRefused("demo", -32000, "Authentication required")

    desk.launcher.opening = locked
    await desk.hear(to_demo("work"))
    await asked(desk)

    desk.launcher.opening = asyncio.Event().wait
    await desk.answer(1, GO_ON)

    await desk.until(lambda: desk.launcher.told("open") == ["", ""])


async def test_an_error_said_as_an_answer_is_a_limit_too(desk: Desk) -> None:
    async def script(listener: AgentListener) -> None:
        await listener.on_update(TextUpdate("You've hit your usage limit. Try again in 2 hours."))

    desk.launcher.script = script
    await desk.hear(to_demo("work"))

    assert "hit its usage limit" in await asked(desk)


async def test_another_error_still_fails(desk: Desk) -> None:
    desk.launcher.script = once(AgentRefused("demo", -32603, "it broke"))
    await desk.hear(to_demo("work"))

    await desk.reached(1, "failed")


def spending(*costs: float, endless: bool = False) -> Script:
    """Make an agent that reports what it has cost, and ends or works on until it is cut off."""

    async def script(listener: AgentListener) -> None:
        for cost in costs:
            await listener.on_update(UsageUpdate(cost=cost, currency="USD"))
        await listener.on_update(TextUpdate("whole"))
        await asyncio.gather(*([asyncio.Event().wait()] if endless else []))

    return script


@pytest.fixture
async def poor_desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock, rules=Rules(budget_usd=1.0)) as desk:
        yield desk


async def test_a_budget_warns_once_before_it_is_spent(poor_desk: Desk) -> None:
    poor_desk.launcher.script = spending(0.5, 0.81, 0.9)
    await poor_desk.hear(to_demo("work"))
    await poor_desk.reached(1, "done")

    rows = await poor_desk.stores.transcript.read(1, after=0, limit=99)
    warnings = [row.text for row in rows if row.kind == "notice"]
    assert warnings == ["$0.81 of the $1.00 budget is spent."]


async def test_a_spent_budget_pauses_the_turn_until_somebody_says_go_on(
    poor_desk: Desk, clock: ManualClock
) -> None:
    desk = poor_desk
    desk.launcher.script = spending(0.6, 1.2, endless=True)
    await desk.hear(to_demo("work"))
    await clock.asleep(3)
    await clock.advance(2)
    assert "has spent $1.20 here; the budget of this session is $1.00" in await asked(desk)
    assert desk.session().state == SessionState.WAITING

    desk.launcher.script = spending(1.3, 1.9)
    await desk.answer(1, GO_ON)
    await desk.reached(1, "done")

    assert desk.session().spent == pytest.approx(0.7)  # since then


async def test_a_budget_that_the_last_words_spent_pauses_the_next_turn(poor_desk: Desk) -> None:
    desk = poor_desk

    async def script(listener: AgentListener) -> None:
        await listener.on_update(UsageUpdate(cost=2.0))

    desk.launcher.script = script
    await desk.hear(to_demo("work"))
    await desk.reached(1, "done")
    await desk.hear(to_demo("more"))
    await asked(desk)

    assert len(desk.launcher.told("prompt")) == 1
    desk.launcher.script = spending(2.1)
    await desk.answer(1, GO_ON)
    await desk.reached(2, "done")


async def test_what_turns_cost_is_counted_without_a_budget_and_for_the_repository(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock) as desk:
        desk.launcher.script = spending(0.5, 2.0)
        await desk.hear(to_demo("work"))
        await desk.reached(1, "done")
        clone = Checkout(1, 1, Repository("o/r", "https://git.example/o/r.git"), "branch", "b")
        await desk.stores.checkouts.begin(clone)
        desk.launcher.script = spending(5.0)
        await desk.hear(to_demo("more"))
        await desk.reached(2, "done")
        spent = await desk.stores.spending.list("2000-01-01")

    assert {each.share: (each.name, each.usd) for each in spent} == {
        "person": ("web:ann", 5.0),
        "place": ("web:t1", 5.0),
        "agent": ("demo", 5.0),
        "day": ("", 5.0),
        "repository": ("o/r", 3.0),
    }


def by(person: str, text: str, place: str = "t1") -> Heard:
    said = replace(to_demo(text), speaker=Speaker(person, person.title()))
    return replace(said, place=PlaceKey("web", place), external=place)


@pytest.mark.parametrize(
    ("share", "others", "words"),
    [
        ("person", by("bob", "more"), "The person who asked has spent $2.00 today"),
        ("place", by("ann", "more", "t2"), "$2.00 was spent here today"),
        ("agent", None, "demo has spent $2.00 today"),
        ("day", None, "All agents together have spent $2.00 today"),
    ],
)
async def test_what_a_day_may_cost_pauses_the_next_turn_until_the_next_day(
    tmp_path: Path, clock: ManualClock, share: Share, others: Heard | None, words: str
) -> None:
    daily = DailyLimits({share: 1.5}, ZoneInfo("Europe/Berlin"))
    async with running_desk(tmp_path, clock=clock, rules=Rules(daily=daily, resume=True)) as desk:
        desk.launcher.script = spending(2.0)
        await desk.hear(by("ann", "work"))
        await desk.reached(1, "done")
        if others is not None:
            # It is not their budget, or not the budget of that place.
            desk.launcher.script = say_ok
            await desk.hear(others)
            await desk.reached(2, "done")
        prompts = len(desk.launcher.told("prompt"))

        desk.launcher.script = say_ok
        await desk.hear(by("ann", "again"))

        title = await asked(desk)
        assert words in title
        assert "continues then" in title
        assert len(desk.launcher.told("prompt")) == prompts
        spent = await desk.stores.spending.list(daily.day_of(clock.now()))
        assert {each.share: each.name for each in spent if each.usd == 2.0} == {
            "person": "web:ann",
            "place": "web:t1",
            "agent": "demo",
            "day": "",
        }
        await clock.advance(daily.find_end(clock.now()) - clock.now() + 1)
        await desk.reached(2 if others is None else 3, "done")


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect what sessions deliver."""
    keys: list[str] = []

    async def ship(
        _provider: RepoProvider, session: Session, _target: Target, _work: Work
    ) -> Shipped:
        keys.append(str(session.key))
        return Shipped()

    monkeypatch.setattr(RepoProvider, "ship", ship)
    return keys


async def test_a_turn_that_ends_by_itself_when_its_budget_is_spent_is_delivered(
    poor_desk: Desk, shipped: list[str]
) -> None:
    poor_desk.launcher.script = spending(2.0)
    await poor_desk.hear(to_demo("work"))
    await poor_desk.reached(1, "done")

    assert shipped == ["web:t1:demo"]


async def test_a_turn_that_its_budget_cut_off_is_not_delivered(
    poor_desk: Desk, clock: ManualClock, shipped: list[str]
) -> None:
    poor_desk.launcher.script = spending(2.0, endless=True)
    await poor_desk.hear(to_demo("work"))
    await clock.asleep(3)
    await clock.advance(2)
    await asked(poor_desk)

    assert shipped == []


async def test_a_stop_in_the_moment_of_a_pause_is_said(
    poor_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, pause = poor_desk, TurnStore.pause
    desk.launcher.script = spending(2.0)
    await desk.hear(to_demo("work"))
    await desk.reached(1, "done")

    async def pause_after_a_stop(turns: TurnStore, *args: Any, **kwargs: Any) -> Any:
        await desk.manager.stop(1)
        return await pause(turns, *args, **kwargs)

    monkeypatch.setattr(TurnStore, "pause", pause_after_a_stop)
    await desk.hear(to_demo("more"))
    await desk.until(lambda: desk.posts()[-1].content.note == "Stopped.")

    assert desk.turn(2).state == TurnState.CANCELLED


async def test_an_agent_that_counts_from_nothing_again_adds_up(poor_desk: Desk) -> None:
    poor_desk.launcher.script = spending(0.3, 0.2)
    await poor_desk.hear(to_demo("work"))
    await poor_desk.reached(1, "done")

    assert poor_desk.session().spent == pytest.approx(0.5)


async def test_an_agents_own_limit_holds_its_turns_back(tmp_path: Path) -> None:
    rules = Rules(agents=("demo", "other"), of_agent={"demo": 1})
    async with running_desk(tmp_path, rules=rules) as desk:
        free = asyncio.Event()
        desk.launcher.script = lambda _listener: free.wait()
        for place in ("t1", "t2"):
            await desk.hear(replace(heard("hello", place), mentions=("demo",)))
        await desk.hear(replace(heard("hello", "t3"), mentions=("other",)))
        await desk.until(lambda: len(desk.launcher.told("prompt")) == 2)

        assert desk.turn(2).state == TurnState.QUEUED
        free.set()
        await desk.reached(2, "done")
        assert desk.launcher.told("close", "t1") == [""]


@pytest.mark.long
async def test_a_process_that_is_started_too_often_has_to_wait(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock) as desk:
        for number in range(1, STARTS + 1):
            await desk.hear(to_demo("new"))
            await desk.hear(to_demo(f"start {number}"))
            await desk.reached(number, "done")
        await desk.hear(to_demo("new"))
        await desk.hear(to_demo("once more"))
        await desk.reached(STARTS + 1, "starting")
        await clock.asleep()
        assert len(desk.launcher.told("open")) == STARTS

        await clock.advance(60)

        await desk.reached(STARTS + 1, "done")
