"""A running child: its pipes, its end, its identity; floods that must not hurt."""

from __future__ import annotations

import asyncio
import resource
import sys

import pytest

from app.children.process import Tail
from app.children.sandbox import Sandbox
from app.children.spawn import ChildCommand, spawn
from app.children.stop import StopSteps, running, stop
from app.errors import AgentNotStarted
from tests.unit.children.conftest import Launch, World
from tests.unit.children.helpers import BOUND, line, outcome, rest

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


async def test_it_talks_both_ways_and_tells_its_status(sandbox: Sandbox, launch: Launch) -> None:
    child = await launch("sh", "-c", "read word; echo got $word; exit 3", sandbox=sandbox)

    child.write(b"hello\n")
    await child.drain()

    assert await line(child) == "got hello"
    assert await child.wait() == 3
    assert await rest(child) == ""
    assert child.stdout.at_eof()
    await stop(child)


async def test_death_by_signal_is_told_alike_with_and_without_sandbox(
    sandbox: Sandbox, launch: Launch
) -> None:
    child = await launch("sh", "-c", "kill -9 $$", sandbox=sandbox)

    assert await child.wait() == -9
    await stop(child)


async def test_it_leads_a_session_and_a_group_of_its_own(world: World) -> None:
    status, output, _ = await outcome(
        ["sh", "-c", "cut -d ' ' -f 1,5,6 /proc/$$/stat"], world.env, world.workspace
    )

    assert status == 0
    assert len(set(output.split())) == 1


async def test_a_flood_of_errors_neither_blocks_nor_stays(world: World) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = (
        "import os\nfor _ in range(32): os.write(2, b'x' * 1048575 + b'\\n')\nos.write(2, b'end')"
    )

    status, _, words = await outcome(python(code), world.env, world.workspace)

    assert status == 0
    assert words == "end"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024


async def test_output_that_nobody_reads_makes_the_child_wait_and_is_not_lost(
    launch: Launch,
) -> None:
    code = (
        "import os\nfor _ in range(4): os.write(1, b'x' * 1048576); os.write(2, b'.')\n"
        "os.write(1, b'end')"
    )
    child = await launch(*python(code))
    async with asyncio.timeout(BOUND):
        while not child.stdout.is_paused:  # noqa: ASYNC110 - nobody is told of a pause
            await asyncio.sleep(0)
    assert child.status is None
    assert len(child.last_words()) < 2

    async with asyncio.timeout(BOUND):
        output = await rest(child)

    assert len(output) == 4 * MEGABYTE + 3
    assert output.endswith("end")
    await stop(child)


async def test_writing_to_a_child_that_does_not_read_waits_until_it_is_stopped(
    world: World,
) -> None:
    steps = StopSteps(close=0)
    async with running(
        ChildCommand(("sleep", "1000")),
        name="claude",
        env=world.env,
        cwd=world.workspace,
        steps=steps,
    ) as child:
        child.write(b"x" * 4 * MEGABYTE)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await child.drain()
        waiting = asyncio.create_task(child.drain())
        await asyncio.sleep(0)
        child.close_input()
        with pytest.raises(BrokenPipeError):
            await waiting


async def test_writing_to_a_dead_child_is_an_error_at_once(launch: Launch) -> None:
    child = await launch("true")
    await child.wait()
    await stop(child)

    with pytest.raises(BrokenPipeError):
        child.write(b"x")
    with pytest.raises(BrokenPipeError):
        await child.drain()


async def test_output_ends_with_the_child_though_a_grandchild_holds_the_pipe(
    launch: Launch,
) -> None:
    child = await launch("sh", "-c", "sleep 1000 & echo last words")

    async with asyncio.timeout(BOUND):
        assert await child.wait() == 0
        assert await rest(child) == "last words\n"
    report = await stop(child)

    assert len(report.swept) == 1


async def test_a_command_that_does_not_exist_is_named_with_a_remedy(launch: Launch) -> None:
    with pytest.raises(AgentNotStarted, match=r"claude could not be started: '/no/such'.*Check"):
        await launch("/no/such")


async def test_a_workspace_that_does_not_exist_is_no_start(world: World) -> None:
    with pytest.raises(AgentNotStarted):
        await spawn(
            ChildCommand(("true",)), name="claude", env=world.env, cwd=world.workspace / "gone"
        )


async def test_its_identity_lasts_and_differs_from_the_next_ones(
    world: World, launch: Launch
) -> None:
    first = await launch("cat")
    second = await launch("cat")

    assert first.identity.group == first.pid
    assert first.identity.marker == world.marker
    assert first.identity.started.count(":") == 1
    assert first.identity != second.identity
    await asyncio.gather(stop(first), stop(second))


async def test_two_readers_are_refused(launch: Launch) -> None:
    child = await launch("cat")
    reader = asyncio.create_task(child.stdout.read(1))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="two readers"):
        await child.stdout.read(1)

    await stop(child)
    assert await reader == b""


def test_the_tail_keeps_the_end_and_cuts_at_a_line() -> None:
    tail = Tail(size=18)
    tail.feed(b"0123456789\n")
    tail.feed("Grüße\nfrom here\n".encode())

    assert tail.text(100) == "Grüße\nfrom here"
    assert tail.text(12) == "from here"
    assert tail.text(4) == "here"
