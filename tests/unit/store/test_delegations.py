"""Rows of delegations: what is counted, what goes with a conversation, what people are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.features.conversations.store import ConversationChanges
from app.features.delegation.store import DelegationStore
from app.model.delegation import Delegation, DelegationLimits, NewDelegation
from app.model.keys import PlaceKey
from app.model.posts import Note, NoteCode, PostContent
from app.model.types import TurnRef, TurnState
from app.store import tables
from app.store.database import Database
from app.store.stores import Stores
from tests.support.clock import ManualClock
from tests.support.memory import ANN, decision, heard, open_stores

pytestmark = pytest.mark.anyio

PLACE = PlaceKey("web", "t1")
DEEP = DelegationLimits(depth=3)


class Store:
    """A store in which a person asked an agent, which runs."""

    def __init__(self, database: Database, stores: Stores, clock: ManualClock) -> None:
        self.database = database
        self.stores = stores
        self.clock = clock
        self.rows = stores.open(DelegationStore)

    async def say(self, text: str = "go", place: str = "t1") -> TurnRef:
        """Let a person say something; returns the turn."""
        accepted = await self.stores.decisions.accept(decision(heard(text, place), "demo"))
        (ref,) = accepted.turns
        await self.run(ref.turn)
        return ref

    async def run(self, turn: int) -> None:
        """Let a turn begin."""
        await self.stores.turns.starting(turn)
        await self.stores.turns.prompted(turn, "prompt", "acp", 1)

    async def end(self, turn: int) -> None:
        """Let a turn end."""
        content = PostContent(kind="turn", state="done")
        await self.stores.turns.finish(turn, TurnState.DONE, content, ())

    async def ask(
        self, by: TurnRef, agent: str, task: str = "look", limits: DelegationLimits = DEEP
    ) -> Delegation | str:
        """Ask an agent; returns what began, or the limit that was reached."""
        new = NewDelegation("message", agent, by.session, by.turn, task, ANN, repository="none")
        begun = await self.rows.begin(new, limits)
        if begun.delegation is None:
            return begun.limit
        await self.run(begun.delegation.turn)
        return begun.delegation

    def count(self, name: str) -> int:
        table = tables.metadata.tables[name]
        with self.database.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(table)).scalar_one())

    def told(self) -> int:
        """Count the notices of limits in the place of people."""
        notes = (tables.transcript.c.kind == "notice") & (tables.transcript.c.place == 1)
        with self.database.engine.connect() as connection:
            return len(connection.execute(select(tables.transcript).where(notes)).all())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    clock = ManualClock()
    with open_stores(tmp_path, clock) as (database, stores):
        yield Store(database, stores, clock)


def ref_of(made: Delegation | str) -> TurnRef:
    assert isinstance(made, Delegation)
    return TurnRef(made.session, made.turn)


async def test_a_pair_of_agents_cannot_ask_each_other_without_end(store: Store) -> None:
    root = await store.say()
    child = await store.ask(root, "codex")

    assert await store.ask(ref_of(child), "demo") == "cycle"


async def test_a_cycle_of_three_is_refused_and_people_are_told_once(store: Store) -> None:
    root = await store.say()
    second = await store.ask(root, "codex")
    third = await store.ask(ref_of(second), "third")

    assert await store.ask(ref_of(third), "codex") == "cycle"
    assert await store.ask(ref_of(third), "demo") == "cycle"
    assert store.told() == 1


async def test_depth_is_bounded(store: Store) -> None:
    limits = DelegationLimits(depth=2)
    root = await store.say()
    one = await store.ask(root, "a", limits=limits)
    two = await store.ask(ref_of(one), "b", limits=limits)

    assert await store.ask(ref_of(two), "c", limits=limits) == "depth"


async def test_a_fan_out_ends_per_turn_and_per_tree_until_a_person_speaks(store: Store) -> None:
    limits = replace(DEEP, per_turn=2, per_tree=3)
    root = await store.say()
    first = await store.ask(root, "a", limits=limits)
    await store.ask(root, "b", limits=limits)
    assert await store.ask(root, "c", limits=limits) == "turn"
    await store.ask(ref_of(first), "d", limits=limits)
    assert await store.ask(ref_of(first), "e", limits=limits) == "tree"

    await store.clock.advance(1)
    await store.stores.decisions.accept(decision(heard("go on"), "demo"))
    await store.clock.advance(1)

    assert isinstance(await store.ask(root, "c", limits=limits), Delegation)


async def test_turns_per_hour_are_counted_for_the_place_over_all_trees(store: Store) -> None:
    limits = replace(DEEP, per_hour=1)
    root = await store.say()
    first = await store.ask(root, "a", limits=limits)

    assert await store.ask(ref_of(first), "b", limits=limits) == "hour"
    other = await store.say(place="t2")
    assert isinstance(await store.ask(other, "a", limits=limits), Delegation)
    await store.clock.advance(3601)
    assert isinstance(await store.ask(root, "b", limits=limits), Delegation)


async def test_a_tree_may_not_begin_more_after_its_time_or_its_budget(store: Store) -> None:
    root = await store.say()
    child = ref_of(await store.ask(root, "a"))
    cost = {"kind": "usage", "session": child.session, "turn": child.turn}
    with store.database.engine.begin() as connection:
        connection.execute(
            tables.transcript.insert(),
            [
                {**cost, "place": 2, "at": 1.0, "data": {"cost": each, "currency": "USD"}}
                for each in (1.0, 2.5)
            ],
        )

    assert await store.ask(root, "b", limits=replace(DEEP, usd=2.5)) == "budget"
    assert isinstance(await store.ask(root, "b", limits=replace(DEEP, usd=2.6)), Delegation)
    await store.clock.advance(61)
    assert await store.ask(root, "c", limits=replace(DEEP, seconds=60)) == "time"


async def test_the_same_call_of_a_turn_that_was_cut_off_begins_nothing(store: Store) -> None:
    root = await store.say()
    first = await store.ask(root, "a")
    again = await store.ask(root, "a")
    assert ref_of(again) != ref_of(first)
    await store.stores.turns.recover()
    await store.run(root.turn)

    same = await store.ask(root, "a")
    other = await store.ask(root, "a", "another task")

    assert ref_of(same) == ref_of(first)
    assert ref_of(other) not in {ref_of(first), ref_of(again)}


async def test_a_deleted_conversation_takes_what_its_agents_asked_for_with_it(
    store: Store,
) -> None:
    root = await store.say()
    child = ref_of(await store.ask(root, "a"))
    grandchild = ref_of(await store.ask(child, "b"))
    await store.say(place="t2")
    below = PlaceKey("agents", "1")
    held = await store.stores.open(ConversationChanges).holdings(PLACE)
    assert held is not None
    assert set(held.children) == {child.session, grandchild.session}
    part = await store.stores.open(ConversationChanges).holdings(below)
    assert part is not None
    assert part.elsewhere == PLACE
    assert not await store.stores.open(ConversationChanges).erase(PLACE)
    for ref in (grandchild, child, root):
        await store.end(ref.turn)

    assert await store.stores.open(ConversationChanges).erase(PLACE)

    left = {name: store.count(name) for name in ("delegation", "place", "session", "turn")}
    assert left == {"delegation": 0, "place": 1, "session": 1, "turn": 1}


async def test_a_cleared_conversation_keeps_its_sessions_and_not_those_of_its_children(
    store: Store,
) -> None:
    root = await store.say()
    child = ref_of(await store.ask(root, "a"))
    for ref in (child, root):
        await store.end(ref.turn)

    await store.stores.open(ConversationChanges).clear(PLACE, Note(NoteCode.CLEARED, "Ann"))

    left = {name: store.count(name) for name in ("delegation", "place", "session", "turn")}
    assert left == {"delegation": 0, "place": 1, "session": 1, "turn": 0}
