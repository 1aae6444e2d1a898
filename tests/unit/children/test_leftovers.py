"""What an earlier life of the bridge left behind, and who must not be taken for it."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.children.proc_table import (
    ProcessIdentity,
    entry_of,
    kill_leftovers,
    read_proc_table,
    signal_exactly,
    started,
)
from tests.unit.children.conftest import World
from tests.unit.children.helpers import carriers, eventually_now, exists

BRIDGE = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from app.children.spawn import ChildCommand
from app.children.spawn import spawn

async def main():
    argv, env, cwd = json.loads(sys.argv[1])
    child = await spawn(ChildCommand(tuple(argv)), name="agent", env=env, cwd=Path(cwd))
    await child.stdout.read(100)
    print(json.dumps(dataclasses.asdict(child.identity)), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Run an innocent process in a session of its own."""
    with subprocess.Popen(["sleep", "1000"], env={}, start_new_session=True) as process:
        yield process
        process.kill()


def crash(world: World, script: str) -> ProcessIdentity:
    """Start an agent under a bridge and kill the bridge with -9."""
    words = json.dumps([["/bin/sh", "-c", script], world.env, str(world.workspace)])
    with subprocess.Popen([sys.executable, "-c", BRIDGE, words], stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout is not None
        identity = ProcessIdentity(**json.loads(bridge.stdout.readline()))
        bridge.kill()
    return identity


def living_members(identity: ProcessIdentity) -> list[int]:
    proc_table = read_proc_table().values()
    return [entry.pid for entry in proc_table if entry.group == identity.group and entry.alive]


def names(pids: list[int]) -> list[str]:
    return [entry.name for pid in pids if (entry := entry_of(pid)) is not None]


def test_an_agent_with_its_family_is_gone_after_the_next_start(world: World) -> None:
    identity = crash(world, "setsid sleep 1000 & sleep 1000 & echo ready; exec sleep 1000")
    # A process that is just replaced by its program shows no environment for a moment.
    eventually_now(lambda: len(carriers(world.marker)) == 3)

    sweep = kill_leftovers([identity])

    assert len(sweep.killed) == 3
    assert any(word.endswith(f"({identity.group})") for word in sweep.killed)
    assert sweep.remaining == ()
    assert not carriers(world.marker)


def test_members_of_a_group_are_killed_though_their_leader_is_gone(world: World) -> None:
    # One carries the marker and so vouches for the other, which carries nothing.
    identity = crash(world, "env -i sleep 1001 & sleep 1000 & echo ready")
    eventually_now(lambda: names(living_members(identity)) == ["sleep", "sleep"])
    members = living_members(identity)

    kill_leftovers([identity])

    assert not any(exists(pid) for pid in members)


def test_a_group_without_leader_and_marker_is_left_alone(world: World) -> None:
    # A leader that is a zombie still proves whose group it is, so this one is collected here.
    words = ["/bin/sh", "-c", "env -i sleep 1000 &"]
    with subprocess.Popen(words, env=world.env, start_new_session=True) as leader:
        identity = ProcessIdentity(leader.pid, started(entry_of(leader.pid)), world.marker)
    eventually_now(lambda: names(living_members(identity)) == ["sleep"])
    (member,) = living_members(identity)

    sweep = kill_leftovers([identity])

    assert sweep.killed == ()
    assert exists(member)
    os.kill(member, 9)


def test_a_start_that_was_never_stored_is_known_by_the_bridges_mark(world: World) -> None:
    identity = crash(world, "echo ready; exec sleep 1000")

    assert kill_leftovers([], bridge=f"{world.bridge}-another").killed == ()
    (killed,) = kill_leftovers([], bridge=world.bridge).killed
    assert killed.endswith(f"({identity.group})")


def test_a_number_that_belongs_to_another_process_now_is_not_killed(
    sleeper: subprocess.Popen[bytes],
) -> None:
    boot, _, ticks = started(entry_of(sleeper.pid)).partition(":")
    recycled = [
        ProcessIdentity(sleeper.pid, f"{boot}:{int(ticks) - 1}", "marker"),
        ProcessIdentity(sleeper.pid, f"earlier-boot:{ticks}", "marker"),
        ProcessIdentity(sleeper.pid, "", ""),
    ]

    sweep = kill_leftovers(recycled)

    assert sweep.killed == ()
    assert sleeper.poll() is None


def test_the_same_number_with_the_same_start_is_killed(sleeper: subprocess.Popen[bytes]) -> None:
    identity = ProcessIdentity(sleeper.pid, started(entry_of(sleeper.pid)), "marker")

    kill_leftovers([identity])

    assert sleeper.wait() == -9


def test_a_signal_reaches_only_the_process_that_was_seen(
    sleeper: subprocess.Popen[bytes],
) -> None:
    entry = entry_of(sleeper.pid)
    assert entry is not None

    assert not signal_exactly(dataclasses.replace(entry, ticks=entry.ticks - 1), signal.SIGKILL)
    assert sleeper.poll() is None
    assert signal_exactly(entry, signal.SIGKILL)
    sleeper.wait()
    assert not signal_exactly(entry, signal.SIGKILL)


PROCESS_ONE = """
import asyncio, ctypes, json, os, sys
from pathlib import Path
from app.children.proc_table import read_proc_table
from app.children.spawn import ChildCommand
from app.children.stop import StopSteps, running

async def main():
    ctypes.CDLL(None).prctl(36, 1)  # as process 1 of a container it would inherit orphans
    argv, env, cwd = json.loads(sys.argv[1])
    steps = StopSteps(close=0, terminate=0)
    command = ChildCommand(tuple(argv))
    async with running(command, name="agent", env=env, cwd=Path(cwd), steps=steps) as child:
        await child.stdout.read(100)
    entries = read_proc_table().values()
    print(child.status, [entry for entry in entries if entry.parent == os.getpid()])

asyncio.run(main())
"""


def test_a_bridge_that_is_process_one_keeps_no_zombies(world: World) -> None:
    argv = ["sh", "-c", "trap '' TERM; (setsid sleep 1000 &); echo ready; sleep 1000"]
    words = json.dumps([argv, world.env, str(world.workspace)])

    run = subprocess.run([sys.executable, "-c", PROCESS_ONE, words], capture_output=True, text=True)

    assert run.stdout == "-9 []\n", run.stderr


def test_the_bridge_itself_and_its_parents_are_spared_even_if_they_carry_the_mark(
    world: World,
) -> None:
    # As when a bridge is started by an agent of an earlier one.
    code = (
        "from app.children.proc_table import kill_leftovers\n"
        f"print(kill_leftovers([], bridge={world.bridge!r}))"
    )
    run = subprocess.run(
        ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, code],
        env=world.env,
        capture_output=True,
        check=True,
    )

    assert b"killed=()" in run.stdout


def test_a_name_with_blanks_and_parentheses_is_read(tmp_path: Path) -> None:
    program = tmp_path / "a) R (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "1000"]) as process:
        entry = entry_of(process.pid)
        process.kill()

    assert entry is not None
    assert entry.parent == os.getpid()


def test_where_nothing_is_left_nothing_is_done() -> None:
    sweep = kill_leftovers([ProcessIdentity(2**22 + 1, "boot:1", "no-such-marker")])

    assert (sweep.killed, sweep.remaining) == ((), ())
