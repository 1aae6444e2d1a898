"""A few kilobytes that name ten billion files, or hold gigabytes, and would take all memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import RepositoryError
from tests.support.bridge import demo
from tests.support.git_server import git
from tests.support.github import PullWorld
from tests.support.tree_bomb import SCRIPT, nest
from tests.support.yard import open_yard

NAME = "acme/widgets"
MACHINE_BYTES = 512 * 1024**2
REFUSED = "has more than 1,000,000 files and folders"


@pytest.fixture
def bounded() -> Iterator[None]:
    """Bound what processes of this test may take, so that the machine survives a failure."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (1024**3, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.long
def test_a_push_of_ten_billion_files_is_refused_and_others_are_answered_meanwhile(
    tmp_path: Path,
) -> None:
    world = PullWorld(tmp_path)
    world.bridge.agents = {"claude": demo(mode="free")}
    world.bridge.wrapper = ["prlimit", f"--data={MACHINE_BYTES}"]
    with world:
        bomb, other = world.issue(title="Bomb"), world.issue(title="Other")

        push = "git push origin $BOMB:refs/heads/$(git branch --show-current) 2>&1"
        script = "; ".join([*SCRIPT.splitlines(), push]).replace("do;", "do")
        world.github.comment("ann", bomb, f"@claude-bridge\nrun {script}")
        world.github.comment("ann", other, "@claude-bridge\nsay Hello")

        world.wait_for(other, "Hello")
        world.wait_for(bomb, REFUSED)
        world.settled()
        assert list(world.github.git.branches(NAME)) == ["main"]


async def test_a_fork_with_ten_billion_files_is_not_checked_out(
    tmp_path: Path, bounded: None
) -> None:
    async with open_yard(tmp_path) as yard:
        bare = yard.server.path("acme/app")
        bomb = git(bare, "commit-tree", nest(bare, [10] * 10), "-p", "main", "-m", "Bomb")
        git(bare, "update-ref", "refs/pull/1/head", bomb)

        with pytest.raises(RepositoryError, match=f"Commit {bomb[:12]} {REFUSED}"):
            await yard.open(yard.clone(way="detached", start="refs/pull/1/head"))

        with pytest.raises(RepositoryError, match=REFUSED):
            await yard.checkouts.compare(yard.repository(), "demo", "refs/pull/1/head", "")


MEBIBYTE = 1024**2


def number(value: int) -> bytes:
    """Write a size as differences do: seven bits a byte, the lowest first."""
    head = bytes([value & 127 | (128 if value > 127 else 0)])
    return head + (number(value >> 7) if value > 127 else b"")


def packed(kind: int, size: int, content: bytes) -> bytes:
    """Write one object of a pack."""
    first = kind << 4 | size & 15
    head = bytes([first | 128]) + number(size >> 4) if size > 15 else bytes([first])
    return head + content


def swelling_pack(times: int) -> bytes:
    """Write a pack of one small file, and of one that is the first one so many times."""
    base = packed(3, MEBIBYTE, zlib.compress(bytes(MEBIBYTE)))
    # Copies a mebibyte from the start, the third byte of whose size is 16.
    copies = number(MEBIBYTE) + number(MEBIBYTE * times) + b"\xc0\x10" * times
    delta = packed(7, len(copies), b"")
    name = hashlib.sha1(b"blob 1048576\0" + bytes(MEBIBYTE), usedforsecurity=False).digest()
    body = struct.pack(">4sII", b"PACK", 2, 2) + base + delta + name + zlib.compress(copies)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


async def send(door: Path, line: str, pack: bytes) -> str:
    """Push a pack as no git would write it; returns the answer."""
    folder = os.open(door, os.O_RDONLY)
    try:
        # The path of a socket has room for 100 bytes.
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/push")
    finally:
        os.close(folder)
    command = f"{line}\0report-status".encode()
    writer.write(f"{len(command) + 4:04x}".encode() + command + b"0000" + pack)
    async with asyncio.timeout(30):
        said = await reader.read()
    writer.close()
    return said.decode(errors="replace")


async def test_differences_that_swell_to_a_huge_file_are_not_unpacked(
    tmp_path: Path, bounded: None
) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        await yard.open(clone)
        (door,) = yard.folder.glob("gates/*/door")
        line = f"{'0' * 40} {yard.server.head('acme/app', 'main')} refs/heads/{clone.branch}"

        refused = await send(door, line, swelling_pack(250))
        taken = await send(door, line, swelling_pack(20))

        assert "unpack index-pack abnormal exit" in refused
        assert f"ok refs/heads/{clone.branch}" in taken


def limits_of(pid: int) -> dict[str, str]:
    """Read what the kernel lets a process have, by the name of each limit."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return {line[:26].strip(): line[26:].split()[0] for line in lines[1:]}


def kill_score(pid: str) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


async def test_every_git_of_the_bridge_has_an_end_and_ends_before_the_bridge(
    tmp_path: Path,
) -> None:
    async with open_yard(tmp_path) as yard:
        mirror = await yard.mirrors.refresh(yard.repository(), "demo")
        async with yard.git.start(mirror, "cat-file", "--batch") as child:
            found = limits_of(child.pid)
            score = kill_score(str(child.pid))

        assert 0 < int(found["Max data size"]) <= 4 * 1024**3
        assert 0 < int(found["Max cpu time"]) <= 3600
        assert score > kill_score("self")
