"""The updates of a turn: order kept, joined into rows, secrets kept in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.feed import Feed, Unfinished
from app.core.update_router import ANSWER_CHARACTERS, ROW_CHARACTERS, UpdateRouter
from app.model.posts import PostContent, ToolLine
from app.model.types import Entry, TurnRef
from app.model.updates import (
    PlanStep,
    PlanUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UsageUpdate,
)
from app.store.stores import Stores
from app.vault import Vault
from tests.support.base import make_base
from tests.support.clock import ManualClock
from tests.support.memory import decision, heard, open_stores

pytestmark = pytest.mark.anyio

SECRET = "hunter2-hunter2-hunter2"


@dataclass
class Scene:
    """A router on a real store."""

    stores: Stores
    clock: ManualClock
    feed: Feed
    ref: TurnRef
    shown: list[PostContent] = field(default_factory=list)

    def router(self) -> UpdateRouter:
        router = UpdateRouter(
            make_base(self.stores, self.clock, vault=Vault([SECRET])),
            self.ref,
            feed=self.feed,
            on_progress=lambda: self.shown.append(router.content("working")),
        )
        return router

    async def rows(self) -> list[Entry]:
        found = await self.stores.transcript.read(self.ref.session, after=0, limit=500)
        return [row for row in found if row.kind != "message"]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = ManualClock()
    with open_stores(tmp_path, clock) as (_, stores):
        accepted = await stores.decisions.accept(decision(heard("hello"), "demo"))
        yield Scene(stores, clock, Feed(stores.transcript, stores.sessions), accepted.turns[0])


async def test_text_is_joined_into_one_row(scene: Scene) -> None:
    router = scene.router()
    for piece in ("one ", "two ", "three"):
        await router.take(TextUpdate(piece))
    await router.close()

    assert [(row.kind, row.text) for row in await scene.rows()] == [("text", "one two three")]


async def test_a_change_of_kind_begins_a_new_row_in_order(scene: Scene) -> None:
    router = scene.router()
    await router.take(ThoughtUpdate("hmm"))
    await router.take(TextUpdate("a"))
    await router.take(ToolUpdate("c1", title="Run", status="pending"))
    await router.take(TextUpdate("b"))
    await router.take(PlanUpdate((PlanStep("x"),)))
    await router.take(UsageUpdate(used=1))
    await router.close()

    assert [row.kind for row in await scene.rows()] == [
        "thought",
        "text",
        "tool",
        "text",
        "plan",
        "usage",
    ]


async def test_a_row_waits_no_longer_than_a_second(scene: Scene) -> None:
    router = scene.router()
    await router.take(TextUpdate("early"))
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    await router.flush()  # has nothing to write itself, but waits for its turn

    assert [row.text for row in await scene.rows()] == ["early"]
    await router.close()


async def test_a_long_text_is_cut_into_rows_and_nothing_is_lost(scene: Scene) -> None:
    router = scene.router()
    text = "x" * 1000
    for _ in range(200):
        await router.take(TextUpdate(text))
    await router.close()

    rows = await scene.rows()
    assert len(rows) > 1
    assert max(len(row.text) for row in rows) <= ROW_CHARACTERS + 1000
    assert sum(len(row.text) for row in rows) == 200_000


async def test_states_of_a_tool_call_are_merged_and_the_last_one_wins(scene: Scene) -> None:
    router = scene.router()
    await router.take(ToolUpdate("c1", title="Run ls", kind="execute", status="pending"))
    await router.take(ToolUpdate("c1", status="in_progress"))
    await router.take(ToolUpdate("c1", status="completed", output="a b"))
    await router.close()

    (row,) = await scene.rows()
    assert (row.text, row.data["status"], row.data["output"]) == ("Run ls", "completed", "a b")
    assert scene.shown[-1].tools == (ToolLine("c1", "Run ls", "completed", "execute", "a b"),)


async def test_the_post_keeps_a_bounded_part_of_an_endless_answer(scene: Scene) -> None:
    router = scene.router()
    for _ in range(20):
        await router.take(TextUpdate("y" * 60_000))
    await router.close()

    assert len(router.content("done").text) < ANSWER_CHARACTERS + 200
    assert "transcript" in router.content("done").text


async def test_whoever_follows_sees_unfinished_text_and_then_its_row(scene: Scene) -> None:
    router = scene.router()
    following = scene.feed.follow(scene.ref.session, after=0, idle=5)
    message = await anext(following)
    await router.take(TextUpdate("typing"))
    unfinished = await anext(following)
    await router.close()
    row = await anext(following)

    assert isinstance(message, Entry)
    assert unfinished == Unfinished(scene.ref.session, scene.ref.turn, "text", "typing")
    assert isinstance(row, Entry)
    assert row.text == "typing"
    await following.aclose()  # type: ignore[attr-defined]  # an async generator


async def test_a_secret_cut_in_two_by_a_tool_call_reaches_neither_post_nor_database(
    scene: Scene,
) -> None:
    router = scene.router()
    await router.take(TextUpdate(f"before {SECRET[:12]}"))
    await router.take(ToolUpdate("c1", title="Look", status="completed"))
    await router.flush()
    await router.take(TextUpdate(f"{SECRET[12:]} after"))
    await router.flush()
    await router.close()

    shown = [*scene.shown, router.content("done")]
    assert shown[-1].text == "before [secret] after"
    assert all(SECRET[:12] not in content.text for content in shown)
    assert all(SECRET not in row.text for row in await scene.rows())


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(borders=st.lists(st.integers(0, 60), max_size=6), flushes=st.sets(st.integers(0, 6)))
async def test_no_secret_passes_whatever_its_pieces(
    scene: Scene, borders: list[int], flushes: set[int]
) -> None:
    text = f"before {SECRET} after"
    cuts = [0, *sorted(min(border, len(text)) for border in borders), len(text)]
    router = scene.router()
    seen = len(await scene.rows())

    for number, (start, end) in enumerate(pairwise(cuts)):
        await router.take(TextUpdate(text[start:end]))
        if number in flushes:
            await router.flush()
    await router.close()

    said = "".join(row.text for row in (await scene.rows())[seen:])
    assert SECRET not in said
    assert said.startswith("before ")
    assert said.endswith(" after")


async def test_the_last_words_begin_after_the_last_call_that_began(scene: Scene) -> None:
    router = scene.router()
    await router.take(TextUpdate("Let me look."))
    await router.take(ToolUpdate("c1", title="Read a.py", kind="read", status="pending"))
    await router.take(TextUpdate("Found it."))
    await router.take(ToolUpdate("c2", title="Edit a.py", kind="edit", status="pending"))
    await router.take(TextUpdate("It is "))
    await router.take(ToolUpdate("c2", status="completed"))
    await router.take(TextUpdate("fixed."))
    await router.close()

    content = router.content("done")

    assert content.narration == "Let me look.\n\nFound it."
    assert content.said == "It is fixed."
    assert router.outcome().calls == 2


async def test_words_before_a_last_call_stay_the_last_words(scene: Scene) -> None:
    router = scene.router()
    await router.take(TextUpdate("All done."))
    await router.take(ToolUpdate("c1", title="Clean up", status="completed"))
    await router.close()

    assert router.content("done").said == "All done."


async def test_a_secret_before_the_last_words_does_not_move_them(scene: Scene) -> None:
    router = scene.router()
    await router.take(TextUpdate(f"The key is {SECRET[:9]}"))
    await router.take(ToolUpdate("c1", title="Read", status="completed"))
    await router.take(TextUpdate(f"{SECRET[9:]} and that is all."))
    await router.close()

    content = router.content("done")

    assert SECRET not in content.text
    assert content.said.endswith("that is all.")
