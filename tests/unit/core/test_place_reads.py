"""One mention reads its place a few times, however much its agent says."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.types import PlaceView
from app.model.updates import TextUpdate, ToolUpdate
from app.store.decisions import IntakeStore
from tests.support.desk import Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

MOST_READS = 3


def said(text: str, service: str, thread: str) -> Heard:
    return replace(heard(text, thread), place=PlaceKey(service, thread), mentions=("demo",))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[PlaceKey]:
    """Count how often each place is read."""
    counted: Counter[PlaceKey] = Counter()
    read = IntakeStore.place

    def place(self: IntakeStore, where: PlaceKey) -> PlaceView:
        counted[where] += 1
        return read(self, where)

    monkeypatch.setattr(IntakeStore, "place", place)
    return counted


async def talk(listener: AgentListener) -> None:
    for number in range(5):
        await listener.on_update(TextUpdate(f"Step {number}. "))
        await listener.on_update(ToolUpdate(f"call{number}", "Read a file", "read"))


@pytest.mark.parametrize(("service", "thread"), [("web", "t1"), ("slack", "C1:1.0")])
async def test_a_mention_reads_its_place_at_most_three_times(
    tmp_path: Path, reads: Counter[PlaceKey], service: str, thread: str
) -> None:
    async with running_desk(tmp_path, rules=Rules(service=service)) as desk:
        desk.launcher.script = talk
        await desk.hear(said("begin", service, thread))
        await desk.reached(1, "done")
        first = reads.total()
        await desk.hear(said("go on", service, thread))
        await desk.reached(2, "done")

    assert first <= MOST_READS
    assert reads.total() - first <= MOST_READS


async def test_a_turn_that_runs_shows_as_much_as_its_place_wants_by_now(tmp_path: Path) -> None:
    said_quiet = asyncio.Event()

    async def wait_then_talk(listener: AgentListener) -> None:
        await said_quiet.wait()
        await talk(listener)

    async with running_desk(tmp_path) as desk:
        desk.launcher.script = wait_then_talk
        await desk.hear(said("begin", "web", "t1"))
        await desk.reached(1, "prompted")
        await desk.hear(said("quiet", "web", "t1"))
        said_quiet.set()
        await desk.reached(1, "done")
        await desk.until(lambda: any(post.content.state == "done" for post in desk.posts()))

        [done] = [post for post in desk.posts() if post.content.state == "done"]
        assert done.content.verbosity == "quiet"
