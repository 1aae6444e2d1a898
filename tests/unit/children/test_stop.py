"""The end of a child: polite, stubborn, flooding, with a family; and a caller that goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from app.children.process import Child
from app.children.sandbox import Sandbox
from app.children.spawn import ChildCommand
from app.children.stop import StopSteps, running, stop
from tests.unit.children.conftest import Launch, World
from tests.unit.children.helpers import BOUND, carriers, exists, line, rest

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: a checkout in a hidden folder is hidden with its environment."""
pytestmark = pytest.mark.anyio

QUICK = StopSteps(close=0.05, terminate=0.05, kill=2.0)
STUBBORN = "trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done"

# Its grandchild leaves the group, the session and every pipe, as a daemon does.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        time.sleep(1000)
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(1000)
"""


async def ready(launch: Launch, sandbox: Sandbox, *argv: str) -> Child:
    child = await launch(*argv, sandbox=sandbox)
    assert await line(child) == "ready"
    return child


async def test_an_agent_that_heeds_the_end_of_its_input_is_not_signalled(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    child = await ready(launch, sandbox, "sh", "-c", "echo ready; cat; exit 7")

    report = await stop(child)

    assert (report.step, report.status) == ("closed", 7)
    assert (report.swept, report.remaining) == ((), ())
    assert not carriers(world.marker)


async def test_an_agent_may_tidy_up_when_it_is_terminated(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    script = "trap 'echo saved > history; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    child = await ready(launch, sandbox, "sh", "-c", script)

    report = await stop(child, steps=StopSteps(close=0.01))

    assert (report.step, report.status) == ("terminated", 0)
    assert (world.workspace / "history").read_text() == "saved\n"


async def test_a_stubborn_agent_is_killed(sandbox: Sandbox, world: World, launch: Launch) -> None:
    child = await ready(launch, sandbox, "sh", "-c", STUBBORN)

    report = await stop(child, steps=QUICK)

    assert (report.step, report.status) == ("killed", -signal.SIGKILL)
    assert not exists(child.pid)
    assert not carriers(world.marker)


async def test_a_daemon_that_left_group_and_session_does_not_survive(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    child = await ready(launch, sandbox, PYTHON, "-S", "-c", DAEMON)
    assert len(carriers(world.marker)) >= 2

    report = await stop(child, steps=QUICK)

    assert report.remaining == ()
    assert not carriers(world.marker)


async def test_a_process_that_threw_its_environment_away_is_known_by_its_parent(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    script = "env -i setsid sleep 1000 & echo $! > pid; echo ready; " + STUBBORN
    child = await ready(launch, sandbox, "setsid", "-w", "sh", "-c", script)

    await stop(child, steps=QUICK)

    assert not carriers(world.marker)


async def test_children_of_an_agent_that_died_by_itself_are_swept(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    child = await ready(
        launch, sandbox, "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo ready; kill -9 $$"
    )
    await child.wait()

    report = await stop(child)

    assert (report.step, report.status) == ("exited", -signal.SIGKILL)
    assert not carriers(world.marker)


@pytest.mark.parametrize("stream", [1, 2])
async def test_an_agent_blocked_on_a_full_pipe_can_still_leave(
    sandbox: Sandbox, launch: Launch, stream: int
) -> None:
    # It heeds the end of its input only after it could write everything it has to say.
    code = (
        "import os, sys\nos.write(1, b'ready\\n')\n"
        f"for _ in range(4): os.write({stream}, b'x' * 1048576)\n"
        "sys.stdin.read()"
    )
    child = await ready(launch, sandbox, PYTHON, "-S", "-c", code)

    report = await stop(child)

    assert (report.step, report.status) == ("closed", 0)


async def test_an_agent_that_never_stops_writing_is_stopped(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    child = await ready(launch, sandbox, "sh", "-c", "trap '' TERM PIPE; echo ready; exec yes")

    report = await stop(child, steps=QUICK)

    assert report.step == "killed"
    assert not carriers(world.marker)


async def test_a_reader_sees_the_end_when_the_child_is_stopped(
    sandbox: Sandbox, launch: Launch
) -> None:
    child = await ready(launch, sandbox, "sh", "-c", STUBBORN)
    reader = asyncio.create_task(rest(child))

    await stop(child, steps=QUICK)

    async with asyncio.timeout(BOUND):
        assert await reader == ""


async def test_a_cancelled_caller_learns_of_it_only_after_the_end(
    sandbox: Sandbox, world: World, launch: Launch
) -> None:
    child = await ready(launch, sandbox, "sh", "-c", STUBBORN)
    caller = asyncio.create_task(stop(child, steps=QUICK))
    await asyncio.sleep(0)

    caller.cancel()
    await asyncio.sleep(0)
    caller.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not carriers(world.marker)
    assert (await stop(child)).step == "killed"


async def test_a_timeout_around_the_stop_still_ends_the_child(world: World, launch: Launch) -> None:
    child = await launch("sleep", "1000")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await stop(child, steps=QUICK)

    assert not carriers(world.marker)


async def test_a_closing_event_loop_kills_at_once(world: World, launch: Launch) -> None:
    child = await launch("sleep", "1000")
    caller = asyncio.create_task(stop(child))
    await asyncio.sleep(0)
    assert child.ending is not None

    child.ending.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not carriers(world.marker)


async def test_stopping_twice_and_at_once_is_one_stop(sandbox: Sandbox, launch: Launch) -> None:
    child = await ready(launch, sandbox, "sh", "-c", STUBBORN)

    first, second = await asyncio.gather(stop(child, steps=QUICK), stop(child))

    assert first is second
    assert await stop(child) is first


async def test_the_block_stops_its_child_also_when_it_fails(world: World) -> None:
    with pytest.raises(ZeroDivisionError):
        async with running(
            ChildCommand(("sleep", "1000")),
            name="claude",
            env=world.env,
            cwd=world.workspace,
            steps=QUICK,
        ):
            raise ZeroDivisionError

    assert not carriers(world.marker)


async def test_many_stop_at_once(world: World, launch: Launch) -> None:
    children = [await launch("cat") for _ in range(20)]

    # They share a marker here: whoever is first may sweep the others.
    reports = await asyncio.gather(*(stop(child) for child in children))

    assert all(report.remaining == () for report in reports)
    assert not carriers(world.marker)
