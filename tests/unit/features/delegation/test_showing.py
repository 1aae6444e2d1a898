"""What people see of turns that agents do for others, in posts: meanwhile, and when they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.features.delegation.showing import Showing
from app.model.ports import AgentListener
from app.model.posts import PostSend
from app.model.updates import TextUpdate
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

TEAM = Rules(
    agents=("demo", "codex"),
    names={"demo": "Demo", "codex": "Codex"},
    page="https://bridge.example/t",
)
TASK = "look at the tests"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, rules=TEAM) as running:
        yield running


class Errand:
    """Demo asks Codex and goes on as it is told, and so does Codex."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.caller = asyncio.Event()
        self.child = asyncio.Event()
        self.number = 0
        self.turn = 0
        desk.launcher.scripts |= {"demo": self._ask, "codex": self._do}

    async def begin(self) -> None:
        """Wait until Codex was asked."""
        begun = await self.desk.hear(replace(heard("go"), mentions=("demo",)))
        self.turn = begun.turns[0].turn
        await self.desk.until(lambda: self.number > 0)

    @property
    def errand(self) -> int:
        """The turn of Codex."""
        return self.desk.delegations.read(self.number).turn

    async def _ask(self, listener: AgentListener) -> None:
        made = await self.desk.call("demo", "agents_message", to="codex", text=TASK, mode="async")
        self.number = int(made["id"])
        self.desk.stir()
        await self.caller.wait()
        await listener.on_update(TextUpdate("Demo is done."))

    async def _do(self, listener: AgentListener) -> None:
        await self.child.wait()
        await listener.on_update(TextUpdate("All **good**."))


def lines(posts: list[PostSend]) -> list[list[tuple[str, str]]]:
    return [[(each.agent, each.state) for each in post.content.delegated] for post in posts]


def notices(desk: Desk, agent: str = "demo") -> list[str]:
    sent = desk.posts(agent)
    return [post.content.note for post in sent if post.content.kind == "notice"]


async def test_the_post_of_a_turn_shows_what_it_asked_and_how_far_that_is(desk: Desk) -> None:
    errand = Errand(desk)
    await errand.begin()

    await desk.until(lambda: [("Codex", "working")] in lines(desk.posts()))
    errand.child.set()
    await desk.until(lambda: [("Codex", "done")] in lines(desk.posts()))
    errand.caller.set()
    await desk.until(lambda: desk.posts()[-1].content.state == "done")

    (line,) = desk.posts()[-1].content.delegated
    assert (line.task, line.words, line.depth) == (TASK, "All **good**.", 1)
    assert line.link == f"https://bridge.example/t/agents:{errand.number}"
    desk.delegations.showing.tell()
    await desk.delegations.showing._tasks.settle(5)
    assert await desk.delegations.store.unshown() == []
    assert notices(desk) == []


async def test_what_ends_after_the_turn_that_asked_is_told_once(desk: Desk) -> None:
    errand = Errand(desk)
    await errand.begin()
    errand.caller.set()
    await desk.reached(errand.turn, "done")
    assert lines(desk.posts())[-1] == [("Codex", "working")]

    errand.child.set()
    await desk.until(lambda: bool(notices(desk)))
    desk.delegations.showing.tell()
    await desk.reached(errand.errand, "done")
    await desk.delegations.showing._tasks.settle(5)

    assert notices(desk) == [
        "Codex is done with what Demo asked (look at the tests): All **good**. "
        f"https://bridge.example/t/agents:{errand.number}"
    ]


async def test_a_bridge_that_was_killed_before_it_told_an_end_tells_it_at_its_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Showing, "tell", lambda _self: None)
        async with running_desk(tmp_path, rules=TEAM) as desk:
            errand = Errand(desk)
            await errand.begin()
            errand.caller.set()
            await desk.reached(errand.turn, "done")
            errand.child.set()
            await desk.reached(errand.errand, "done")

    async with running_desk(tmp_path, rules=TEAM) as desk:
        desk.delegations.showing.tell()
        await desk.until(lambda: len(notices(desk)) == 1)
    async with running_desk(tmp_path, rules=TEAM) as desk:
        desk.delegations.showing.tell()
        await desk.delegations.showing._tasks.settle(5)

        assert notices(desk) == []


async def test_nothing_is_told_after_the_turn_that_asked_was_stopped(desk: Desk) -> None:
    errand = Errand(desk)
    await errand.begin()
    await desk.manager.stop(desk.session().id)
    await desk.reached(errand.turn, "cancelled")
    errand.child.set()
    await desk.until(lambda: desk.turn(errand.errand).state in {"done", "cancelled"})

    desk.delegations.showing.tell()
    await desk.delegations.showing._tasks.settle(5)

    assert notices(desk) == []


async def test_an_agent_with_its_own_voice_answers_where_it_began(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=replace(TEAM, voice="own")) as desk:
        errand = Errand(desk)
        await errand.begin()
        errand.child.set()
        await desk.until(lambda: bool(desk.posts("codex")))
        errand.caller.set()
        await desk.reached(errand.turn, "done")
        desk.delegations.showing.tell()
        await desk.delegations.showing._tasks.settle(5)

        (post,) = desk.posts("codex")
        assert (post.content.kind, post.content.state, post.content.text) == (
            "turn",
            "done",
            "All **good**.",
        )
        assert post.target.external == desk.session().key.external
        assert notices(desk) == []
        assert [each.key.agent for each in desk.stores.sessions.in_place(desk.session().place)] == [
            "demo"
        ]
