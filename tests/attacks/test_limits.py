"""Agents that take all there is of the machine: disk, processes, memory, handles, and daemons."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from app.repos import gate
from tests.support.observe import Observed, demo
from tests.support.ordinary import Running, Server, agents, laid_out
from tests.support.platform import Platform
from tests.support.served import SERVE, Served
from tests.support.studio import studio
from tests.support.yard import open_yard

FOUND = find_bubblewrap(os.environ["PATH"])
needs_bubblewrap = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND} cannot be tried without bubblewrap"
)
MEBIBYTE = 1024**2
SECONDS = 10.0
SMALL_DISK = 128
"""Mebibytes: of this, 12.8 must stay free and 6.4 are the store's reserve."""


def free(**more: Any) -> dict[str, Any]:
    """Make the entry of a demo agent that asks nobody."""
    return demo(mode="free", **{"sandbox": "auto", **more})


@contextmanager
def running(folder: Path, **agents: dict[str, Any]) -> Iterator[Observed]:
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        yield bridge


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Make a folder whose `data` is a small file system."""
    (tmp_path / "data").mkdir(mode=0o700)
    options = ["-t", "tmpfs", "-o", f"size={SMALL_DISK}m,mode=700", "tmpfs"]
    mounted = subprocess.run(["mount", *options, tmp_path / "data"], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path / "data"], check=True)


def eventually(check: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def sleeping(seconds: int) -> list[str]:
    """List the processes that sleep for so long, whoever started them."""
    wanted = b"sleep\0" + str(seconds).encode() + b"\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += [folder.name] if (folder / "cmdline").read_bytes() == wanted else []
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_an_agent_that_fills_the_disk_is_stopped_before_the_store_fails(small_disk: Path) -> None:
    """Attack 19."""
    fill = "run while head -c 1000000 /dev/zero >> big; do sleep 0.01; done"
    with running(small_disk, demo=free()) as bridge:
        number = bridge.begin("full", fill)
        bridge.wait(lambda: bool(list(bridge.data_dir.glob("**/big"))), "nothing was written")
        assert "Hello" in bridge.ask("beside", "say Hello")["text"]

        end = bridge.end("full", number)

        assert end["state"] == "failed"
        assert end["note"].startswith("Stopped: the bridge's disk is nearly full (")
        assert "Free some disk space, then try again." in end["note"]
        assert shutil.disk_usage(bridge.data_dir).free > 0
        assert not bridge.logged("the store cannot write")
        # Nobody else begins to write meanwhile, and is told why; afterwards all goes on.
        refused = bridge.ask("beside", "say Hello")
        assert refused["note"].startswith("The disk is nearly full")
        assert bridge.http.get("/readyz").status_code == 200
        bridge.workspace(session=bridge.session("full")).joinpath("big").unlink()
        assert "Hello" in bridge.ask("beside", "say Hello")["text"]


def test_a_disk_that_is_full_at_once_leaves_the_store_its_reserve(small_disk: Path) -> None:
    """Attack 19, by one large allocation that cannot be seen coming."""
    with running(small_disk, demo=free()) as bridge:
        bridge.ask("full", "say Hello")
        big = bridge.workspace(session=bridge.session("full")) / "big"
        # Not by the agent: it is stopped at once, and what it was allocating is then given back.
        with big.open("wb") as file:
            room = shutil.disk_usage(bridge.data_dir).free - 4 * MEBIBYTE
            os.posix_fallocate(file.fileno(), 0, room)

        refused = bridge.ask("beside", "say Hello")

        assert refused["note"].startswith("The disk is nearly full")
        big.unlink()
        assert "Hello" in bridge.ask("beside", "say Hello")["text"]
        eventually((bridge.data_dir / "reserve").exists, "the reserve was not taken again")


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with small limits, for an isolated agent and for one that is not."""
    limits = {"processes": 100, "memory_mb": 200, "file_mb": 16, "disk_mb": 64}
    apart = free(limits=limits)
    with running(
        tmp_path_factory.mktemp("limits"),
        apart=apart,
        bare={**apart, "sandbox": "none"},
        beside=demo(),
    ) as bridge:
        yield bridge


both = pytest.mark.parametrize("agent", ["apart", pytest.param("bare", marks=pytest.mark.long)])


@both
def test_a_session_has_a_share_of_the_disk(bridge: Observed, agent: str) -> None:
    """Attack 19, where the disk is large."""
    fill = "run for f in 1 2 3 4 5 6; do head -c 15000000 /dev/zero > $f; done; sleep 60"

    end = bridge.ask("disk", fill, agent)

    assert end["state"] == "failed"
    assert end["note"].startswith(f"Stopped: {agent} has ")
    assert "in its workspace and home (limit: 64 MiB). Delete files" in end["note"]


@both
def test_a_file_has_a_largest_size(bridge: Observed, agent: str) -> None:
    """Attack 19, by one file."""
    bridge.ask("file", "run head -c 100000000 /dev/zero > big", agent)

    file = bridge.workspace(agent, bridge.session("file", agent)) / "big"
    assert file.stat().st_size == 16 * MEBIBYTE


@both
def test_a_fork_bomb_ends_with_its_session(bridge: Observed, agent: str) -> None:
    """Attack 20: processes; the bomb is bounded in case nobody stops it."""
    seconds = {"apart": 4711, "bare": 4712}[agent]
    bomb = f"run i=0; while [ $i -lt 400 ]; do sleep {seconds} & i=$((i+1)); done; wait"
    number = bridge.begin("bomb", bomb, agent)
    assert "Hello" in bridge.ask("bomb", "say Hello", "beside")["text"]

    end = bridge.end("bomb", number, agent)

    assert end["state"] == "failed"
    assert "processes and threads (limit: 100). Ask for fewer at once" in end["note"]
    eventually(lambda: sleeping(seconds) == [], "it goes on")


@both
def test_memory_has_an_end(bridge: Observed, agent: str) -> None:
    """Attack 20: memory of its processes."""
    hog = "run python3 -c 'import time; a = b\"x\" * 300000000; time.sleep(60)'"

    end = bridge.ask("memory", hog, agent)

    assert end["state"] == "failed"
    assert "MiB of memory (limit: 200 MiB). Ask for smaller steps" in end["note"]


@both
def test_memory_that_processes_share_is_counted_once(bridge: Observed, agent: str) -> None:
    code = 'import os, time; a = b"x" * 60000000; [os.fork() for _ in range(3)]; time.sleep(3)'

    end = bridge.ask("shared", f"run python3 -c '{code}'", agent)

    assert end["state"] == "done"


MEMFD = (
    "import os, time; files = [os.memfd_create('x') for _ in range(20)]; "
    "[os.write(each, bytes(15 * 10**6)) for each in files]; time.sleep(20)"
)
NESTED = (
    "unshare -Urm sh -c 'mount -t tmpfs -o size=400m tmpfs /mnt; i=0; "
    "while [ $i -lt 20 ]; do head -c 15000000 /dev/zero > /mnt/$i; i=$((i+1)); done; sleep 20'"
)
BOTH = (
    "import mmap, os, time; files = [os.memfd_create('x') for _ in range(8)]; "
    "[os.write(each, bytes(15 * 10**6)) for each in files]; "
    "shared = mmap.mmap(-1, 120 * 10**6); shared.write(bytes(120 * 10**6)); time.sleep(20)"
)
HIDDEN = {
    "a file without a name": f'python3 -c "{MEMFD}"',
    "a namespace of its own": NESTED,
    "a file without a name, and as much that processes share": f'python3 -c "{BOTH}"',
}
MAPPED = (
    "import mmap, os, time; file = os.memfd_create('x'); os.truncate(file, 15 * 10**6); "
    "maps = [mmap.mmap(file, 15 * 10**6) for _ in range(8)]; "
    "[each.write(bytes(15 * 10**6)) for each in maps]; [os.fork() for _ in range(3)]; "
    "[each[n] for each in maps for n in range(0, 15 * 10**6, 4096)]; time.sleep(3)"
)


@needs_bubblewrap
@pytest.mark.long
@pytest.mark.parametrize("deed", HIDDEN.values(), ids=HIDDEN)
def test_memory_that_no_process_maps_is_counted(bridge: Observed, deed: str) -> None:
    """Attack 20: memory that is in no process."""
    end = bridge.ask(deed[:12], f"run {deed}", "apart")

    assert end["state"] == "failed", end
    assert "MiB of memory (limit: 200 MiB)" in end["note"]


@needs_bubblewrap
@pytest.mark.long
def test_a_file_without_a_name_that_is_mapped_often_is_counted_once(bridge: Observed) -> None:
    end = bridge.ask("mapped", f'run python3 -c "{MAPPED}"', "apart")

    assert end["state"] == "done", end


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with laid_out("ordinary") as server:
        yield server


@pytest.fixture(scope="module")
def ordinary(server: Server) -> Iterator[Running]:
    """Run a bridge as an ordinary user, with small limits."""
    limits = {"memory_mb": 200, "disk_mb": 64}
    entry = server.demo(mode="free", limits=limits)
    with server.serving(AGENTS_JSON=agents(demo=entry)) as bridge:
        yield bridge


@needs_bubblewrap
@pytest.mark.long
@pytest.mark.parametrize("deed", HIDDEN.values(), ids=HIDDEN)
def test_an_ordinary_user_counts_memory_that_no_process_maps(ordinary: Running, deed: str) -> None:
    """Attack 20, where the bridge may not look into every process."""
    before = ordinary.log.read_text().count("MiB of memory (limit: 200 MiB)")

    ordinary.ask(f"run {deed}")

    assert ordinary.log.read_text().count("MiB of memory (limit: 200 MiB)") == before + 1


@pytest.mark.long
def test_a_folder_that_is_closed_to_the_bridge_is_counted(
    server: Server, ordinary: Running
) -> None:
    """Attack 19, in a folder that its owner can write but not read."""
    hide = "mkdir -m 300 h; for f in 1 2 3 4 5 6; do head -c 15000000 /dev/zero > h/$f; done"

    ordinary.ask(f"run {hide}; sleep 25")

    (closed,) = server.data_dir.glob("workspaces/*/h")
    assert "in its workspace and home (limit: 64 MiB)" in ordinary.log.read_text()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o300


@needs_bubblewrap
@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "/dev"])
def test_temporary_files_are_memory_and_have_an_end(bridge: Observed, folder: str) -> None:
    """Attack 20: memory by files."""
    fill = "for i in 1 2 3 4 5 6 7; do head -c 10000000 /dev/zero > $i; done"

    end = bridge.ask(f"scratch {folder}", f"run cd {folder}; {fill}; cat [1-7] | wc -c", "apart")

    assert "70000000" not in end["text"]
    assert "No space left" in end["text"] or "Read-only file system" in end["text"]


@needs_bubblewrap
def test_temporary_files_count_as_memory(bridge: Observed) -> None:
    """Attack 20: memory by files and processes together."""
    fill = "for f in /tmp /var/tmp /dev/shm; do head -c 15000000 /dev/zero | tee $f/1 > $f/2; done"
    hog = "python3 -c 'import time; a = b\"x\" * 120000000; time.sleep(60)'"

    end = bridge.ask("together", f"run {fill}; {hog}", "apart")

    assert "MiB of memory (limit: 200 MiB)" in end["note"]


@pytest.mark.long
def test_the_setup_of_a_repository_has_the_limits_of_its_agent(tmp_path: Path) -> None:
    """Attack 20, before the agent has begun: by what the bridge runs in its isolation."""
    hog = "exec python3 -c 'import time; a = b\"x\" * 300000000; time.sleep(20)'"
    setup = {".agent-bridge/setup": f"#!/bin/sh\n{hog}\n"}
    with studio(tmp_path, files=setup, entry={"limits": {"memory_mb": 200}}) as here:
        here.tell("say Hello")

        kept = here.world.bridge.rows("select text from transcript where kind = 'notice'")
        (said,) = [text for (text,) in kept if "`.agent-bridge/setup`" in text]
        assert "failed: Stopped: .agent-bridge/setup used" in said
        assert "MiB of memory (limit: 200 MiB)" in said


@both
def test_the_kernel_ends_agents_first_when_memory_runs_out(bridge: Observed, agent: str) -> None:
    """Attack 20, where nobody was fast enough."""
    assert "500" in bridge.ask("oom", "run cat /proc/self/oom_score_adj", agent)["text"]


def test_people_read_what_an_agent_may_use(bridge: Observed) -> None:
    card = bridge.http.get("/api/v1/agents/apart").json()

    assert card["limits"].startswith("100 processes, 200 MiB of memory and 64 MiB of disk per")


@pytest.mark.slow
def test_a_bridge_takes_all_the_handles_that_it_may_have(tmp_path: Path) -> None:
    """Attack 21: a soft limit of 1024, as nearly everywhere."""
    few = ("prlimit", "--nofile=1024:4096", *SERVE)
    with Served(tmp_path, command=few) as served:
        assert served.process is not None
        limits = Path(f"/proc/{served.process.pid}/limits").read_text()

    assert re.search(r"Max open files +4096 +4096", limits)


@pytest.mark.slow
async def test_idle_sockets_at_a_gate_are_few_and_do_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack 21: five sessions with many idle sockets each."""
    monkeypatch.setattr(gate, "IDLE_SECONDS", 0.5)
    async with open_yard(tmp_path) as yard:
        clones = [yard.clone(number, branch=f"agent/demo/web-t{number}") for number in range(5)]
        for clone in clones:
            await yard.open(clone)
        doors = sorted(yard.folder.glob("gates/*/door"))
        assert len(doors) == 5
        sockets = [await idle_socket(door) for door in doors for _ in range(60)]

        async with asyncio.timeout(SECONDS):
            refused = await asyncio.gather(*(reader.read() for reader, _ in sockets))

        assert refused == [b""] * 300
        for _, writer in sockets:
            writer.close()


async def idle_socket(door: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    folder = os.open(door, os.O_RDONLY)
    try:
        # The path of a socket has room for 100 bytes.
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/objects")
    finally:
        os.close(folder)


# What a command leaves behind ends with its turn, so this one goes on.
DAEMON = "run (env -i setsid sleep 4713 </dev/null >/dev/null 2>&1 &); sleep 60"


@pytest.mark.parametrize("how", ["say", "kill", "stop"])
def test_a_daemon_ends_with_its_agent_also_without_isolation(tmp_path: Path, how: str) -> None:
    """Attack 26."""
    agents, brief = {"demo": demo(mode="free")}, {"GRACE_SECONDS": "1"}
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents=agents, settings=brief) as bridge,
    ):
        ends = {
            "say": lambda: bridge.say("daemon", "stop"),
            "kill": bridge.kill,
            "stop": bridge.stop,
        }
        bridge.begin("daemon", DAEMON)
        eventually(lambda: len(sleeping(4713)) == 1, "it did not begin")

        ends[how]()

        eventually(lambda: sleeping(4713) == [], "it outlived its agent")
