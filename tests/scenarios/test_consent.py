"""Asks in every order of events: at most one decision each, in time, by somebody who may."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import event

from app.model.inbound import Answered
from app.model.ports import AgentListener
from app.model.types import Speaker
from app.model.updates import AskOption, AskRequest, ToolUpdate
from tests.support.clock import ManualClock
from tests.support.desk import STRANGER, Desk, Rules, running_desk
from tests.support.memory import ANN, delivery, heard, open_stores
from tests.support.variants import quick

T = TypeVar("T")

BOB = Speaker("bob", "Bob")
HOUR = 3600.0
RULES = Rules(
    idle_seconds=HOUR, ask_seconds=48 * HOUR, turn_seconds=1e9, max_turns=2, max_processes=2
)
OPTIONS = (
    AskOption("allow", "Allow once", "allow_once"),
    AskOption("always", "Allow always", "allow_always"),
    AskOption("no", "Reject", "reject_once"),
)
QUIET_ROUNDS = 3
"""How often nothing may happen before everybody is taken to wait."""

places = st.sampled_from(["t1", "t2"])
people = st.sampled_from([ANN, ANN, BOB, STRANGER])
options = st.sampled_from(["allow", "allow", "bridge:always", "no", "never offered"])
spoken = st.sampled_from(["work"] * 5 + ["Allow once", "reject", "stop", "new", "queue now"])
# One rule for all events: several would be left out of most examples.
says = st.tuples(st.just("say"), spoken, places, people)
clicks = st.tuples(st.just("click"), st.integers(0, 3), options, people)
waits = st.tuples(st.just("wait"), st.sampled_from([0.5, 1, 2, 2, 24, 47, 49]))
restarts = st.tuples(st.just("restart"), st.booleans())
events = st.one_of(says, says, clicks, clicks, clicks, waits, waits, waits, restarts)


def request(number: int) -> AskRequest:
    command = f"make {number}"
    tool = ToolUpdate(f"call-{number}", command, "execute", input={"command": command})
    return AskRequest(tool.call, command, OPTIONS, tool, arguments_hash=command)


# A read that a crash cuts off in its thread leaves its connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in.*BaseConnection")


class Consent(RuleBasedStateMachine):
    """One bridge whose agents ask for two things in every turn."""

    empty: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = TemporaryDirectory()
        shutil.copytree(self.empty, self.folder.name, dirs_exist_ok=True)
        self.clock = ManualClock()
        self.stack = AsyncExitStack()
        self.remote: dict[str, str] = {}
        """What the platform knows, which outlives a bridge."""
        self.received: Counter[tuple[str, str]] = Counter()
        self.closed: dict[int, tuple[Any, ...]] = {}
        self.desk: Desk
        self.changes = 0
        """Counts what is written."""

    @initialize()
    def begin(self) -> None:
        self.start()
        self.say("work", "t1", ANN)

    def start(self) -> None:
        desk = running_desk(Path(self.folder.name), clock=self.clock, rules=RULES)
        self.desk = self.run(self.stack.enter_async_context(desk))
        event.listen(self.desk.database.engine, "before_cursor_execute", self.count)
        for adapter in self.desk.adapters.values():
            adapter.remote = self.remote
        self.desk.launcher.script = self.ask_two_things
        self.settle()

    async def ask_two_things(self, listener: AgentListener) -> None:
        await asyncio.gather(*(self.ask(listener, request(number)) for number in range(2)))

    async def ask(self, listener: AgentListener, asked: AskRequest) -> None:
        answer = await listener.on_ask(asked)
        if answer is not None:
            self.received[asked.title, answer] += 1

    @rule(event=events)
    def happens(self, event: tuple[Any, ...]) -> None:
        what, *facts = event
        getattr(self, what)(*facts)

    def say(self, words: str, place: str, who: Speaker) -> None:
        self.take(replace(heard(words, place, speaker=who), mentions=("demo",)))

    def click(self, back: int, option: str, who: Speaker) -> None:
        last = self.rows("select coalesce(max(id), 0) from ask")[0][0]
        self.take(Answered(max(1, last - back), option, who))

    def wait(self, hours: float) -> None:
        self.run(self.clock.advance(hours * HOUR))
        self.settle()

    def restart(self, crash: bool) -> None:
        if crash:
            self.desk.stores.turns.interrupt = _nothing  # type: ignore[method-assign,assignment]  # nobody tidies up after a crash
        self.run(self.stack.aclose())
        self.stack = AsyncExitStack()
        self.start()

    @invariant()
    def nobody_decided_twice(self) -> None:
        for number, *facts in self.rows("select id, state, answer, answered_by from ask"):
            if facts[0] != "open":
                assert self.closed.setdefault(number, tuple(facts)) == tuple(facts)

    @invariant()
    def nobody_decided_too_late_or_without_a_right(self) -> None:
        bad = "answered_by not in ('Ann', 'Bob') or closed_at >= deadline"
        assert not self.rows(f"select id from ask where state = 'answered' and ({bad})")

    @invariant()
    def an_agent_hears_each_answer_once(self) -> None:
        counted = "select title, answer, count(*) from ask where state = 'answered'"
        given = {
            (name, answer): count for name, answer, count in self.rows(f"{counted} group by 1, 2")
        }
        always = {(subject, "allow") for (subject,) in self.rows('select subject from "grant"')}
        assert all(
            count <= given.get(what, 0) or what in always for what, count in self.received.items()
        )

    @invariant()
    def what_waits_can_be_answered_and_what_is_over_cannot(self) -> None:
        still_open = "select id from ask where ask.turn = turn.id and ask.state = 'open'"
        lonely = f"select id from turn where state = 'parked' and not exists ({still_open})"
        over = "('done', 'failed', 'cancelled')"
        late = f"select id from turn where state in {over} and exists ({still_open})"
        assert not self.rows(lonely)
        assert not self.rows(late)

    @invariant()
    def a_session_does_one_thing_at_a_time(self) -> None:
        running = "select session from turn where state in ('starting', 'prompted')"
        assert not self.rows(f"{running} group by session having count(*) > 1")

    def teardown(self) -> None:
        try:
            if hasattr(self, "desk"):
                self.wait(49)
                self.run(self.stack.aclose())
        finally:
            self.runner.close()
            self.folder.cleanup()

    def take(self, inbound: Any) -> None:
        arrived = delivery("web:demo")
        self.desk.inbound[arrived.delivery_id] = inbound
        self.run(self.desk.intake.take(arrived))
        self.settle()

    def settle(self) -> None:
        """Let everybody go on until they wait for something."""

        async def rounds() -> None:
            quiet, seen = 0, self.seen()
            while quiet < QUIET_ROUNDS:
                await self.desk.database.writer.run(lambda _connection: None)
                await asyncio.to_thread(int)
                for _ in range(10):
                    await asyncio.sleep(0)
                before, seen = seen, self.seen()
                quiet = quiet + 1 if seen == before else 0

        self.run(rounds())

    def seen(self) -> tuple[Any, ...]:
        """Tell what changes whenever anything happens."""
        return self.changes, len(self.desk.launcher.lines), len(self.desk.posts())

    def count(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.changes += statement.lstrip().lower().startswith(("insert", "update", "delete"))

    def rows(self, query: str) -> list[Any]:
        if not hasattr(self, "desk"):
            return []
        with self.desk.database.engine.connect() as connection:
            return list(connection.exec_driver_sql(query))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)


async def _nothing(turn: int) -> None:
    assert turn


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Make a store that is ready once, and not for every example."""
    with open_stores(tmp_path, ManualClock()):
        return tmp_path


def play(empty: Path, *, examples: int, number: int) -> None:
    """Play so many orders of events, others for every number."""
    machine = seed(number)(type("Consent", (Consent,), {"empty": empty}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(180)  # on PostgreSQL every example has its own database
@pytest.mark.parametrize("number", quick(1, range(10)))
def test_no_order_of_events_decides_an_ask_twice_too_late_or_by_the_wrong_person(
    empty: Path, number: int
) -> None:
    play(empty, examples=10, number=number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100, 200))
def test_a_thousand_orders_of_events_decide_no_ask_wrongly(empty: Path, number: int) -> None:
    play(empty, examples=10, number=number)
