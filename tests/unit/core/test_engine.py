"""The turn engine: nothing before recovery, everything put back at the end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from app.model.ports import AgentListener
from app.model.posts import Fact
from app.model.types import File, TurnState
from app.model.updates import AskOption, AskRequest
from app.store.database import FILE_NAME
from tests.support.desk import Rules, open_desk, running_desk
from tests.support.memory import decision, heard

pytestmark = pytest.mark.anyio

MAY_I = AskRequest("call", "May I?", (AskOption("yes", "Yes", "allow_once"),))


@contextmanager
def locked_store(folder: Path) -> Iterator[None]:
    """Keep everybody else from writing."""
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_nothing_runs_before_recovery(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.stores.decisions.accept(decision(heard("one"), "demo"))
        await desk.stores.turns.starting(1)
        await desk.stores.turns.prompted(1, "one", "conversation-0", 1)
        await desk.stores.decisions.accept(decision(heard("two"), "demo"))

        desk.engine.submit(1)
        await desk.manager.start_or_continue(decision(heard("three"), "demo"))
        await desk.engine.start()
        assert desk.launcher.lines == []
        desk.engine.resume()
        await desk.reached(2, "done")

        first, second = desk.launcher.told("prompt")
        assert "continuation" in first
        assert "> one" in first
        assert "two" in second
        assert (desk.turn(1).state, desk.turn(1).cuts) == (TurnState.DONE, 1)


async def test_files_are_laid_beside_the_workspace_and_go_along_with_the_prompt(
    tmp_path: Path,
) -> None:
    upload = tmp_path / "uploads" / "ab12" / "shot.png"
    upload.parent.mkdir(parents=True)
    upload.write_bytes(b"picture")
    file = File("shot.png", "image/png", "ab12/shot.png")
    async with running_desk(tmp_path) as desk:
        said = replace(heard("look"), files=(file,))
        await desk.manager.start_or_continue(decision(said, "demo"))
        await desk.reached(1, "done")

        (laid,) = desk.launcher.files
        assert laid.media_type == "image/png"
        assert laid.path.read_bytes() == b"picture"
        assert laid.path.parent.parent.name.endswith(".files")
        assert f"[Attached: {laid.path}]" in desk.launcher.told("prompt")[0]


async def test_a_stop_before_recovery_is_kept_and_starts_nothing(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.stores.decisions.accept(decision(heard("one"), "demo"))
        await desk.stores.turns.starting(1)
        await desk.stores.turns.prompted(1, "one", "conversation-0", 1)

        await desk.manager.stop(1)
        await desk.engine.start()
        desk.engine.resume()

        assert desk.turn(1).state == TurnState.CANCELLED
        assert desk.launcher.lines == []


async def test_a_shutdown_ends_in_time_although_a_stop_was_given_and_the_store_is_locked(
    tmp_path: Path,
) -> None:
    async with running_desk(tmp_path) as desk, asyncio.TaskGroup() as group:
        deaf = asyncio.Event()
        desk.launcher.script = lambda _listener: asyncio.Event().wait()
        desk.launcher.cancelling = deaf.wait
        await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(1, "prompted")
        group.create_task(desk.manager.stop(desk.session().id))
        await desk.until(lambda: bool(desk.launcher.told("cancel")))

        with locked_store(tmp_path):
            async with asyncio.timeout(5):
                await desk.engine.drain(grace=0)
        deaf.set()
        await desk.stores.turns.recover()

        assert desk.turn(1).state == TurnState.CANCELLED


async def test_a_polite_shutdown_puts_a_turn_back(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        desk.launcher.script = lambda _listener: asyncio.Event().wait()
        await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(1, "prompted")

        await desk.engine.drain(grace=0)

        turn = desk.turn(1)
        assert (turn.state, turn.continued, turn.cuts) == (TurnState.QUEUED, True, 0)


async def test_what_an_agent_asks_during_a_shutdown_waits_for_the_next_start(
    tmp_path: Path,
) -> None:
    go = asyncio.Event()

    async def ask(listener: AgentListener) -> None:
        await go.wait()
        await listener.on_ask(MAY_I)
        await asyncio.Event().wait()

    async with running_desk(tmp_path) as desk:
        desk.launcher.script = ask
        await desk.hear(replace(heard("hello"), mentions=("demo",)))
        await desk.reached(1, "prompted")
        draining = asyncio.ensure_future(desk.engine.drain(grace=600.0))
        await asyncio.sleep(0)
        go.set()

        async with asyncio.timeout(5):
            await draining

        assert (desk.turn(1).state, desk.turn(1).cuts) == (TurnState.QUEUED, 0)
        assert {post.content.kind for post in desk.posts()} == {"turn"}


async def test_a_post_leads_to_the_page_where_others_reach_it(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(page="https://bridge.example.com")) as desk:
        await desk.manager.start_or_continue(decision(heard("hello"), "demo"))
        await desk.reached(1, "done")
        await desk.until(lambda: bool(desk.posts()))

        page = Fact("Details", "https://bridge.example.com/web:t1")
        assert desk.posts()[-1].content.facts == (page,)


async def test_what_the_operator_adds_is_told_once_in_a_conversation(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(place_prompt="Be brief.")) as desk:
        for number in (1, 2):
            await desk.manager.start_or_continue(decision(heard(f"m{number}"), "demo"))
            await desk.reached(number, "done")

        first, second = desk.launcher.told("prompt")
        assert "[The operator of this bridge says: Be brief.]" in first
        assert "Be brief." not in second
