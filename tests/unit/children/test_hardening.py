"""A bridge that nobody of the same user can look into, and that still can do its work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.children.conftest import World

SECRETIVE = """
import sys
from app.children.hardening import make_undumpable
print(make_undumpable(), flush=True)
sys.stdin.read()
"""

WORKING = """
import asyncio, json, sys
from pathlib import Path
from app.children.proc_table import marker_of
from app.children.hardening import make_undumpable
from app.children.command import Command
from app.children.stop import StopSteps, running

async def main():
    make_undumpable()
    argv, env, cwd = json.loads(sys.argv[1])
    async with running(Command(tuple(argv)), name="agent", env=env, cwd=Path(cwd)) as child:
        assert await child.stdout.read(100) == b"ready\\n"
        print(marker_of(child.pid))

asyncio.run(main())
"""


def test_it_says_that_it_holds() -> None:
    run = subprocess.run([sys.executable, "-c", SECRETIVE], input=b"", capture_output=True)

    assert run.stdout == b"True\n", run.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every process")
def test_its_environment_is_closed_to_the_same_user() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SECRETIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as bridge:
        assert bridge.stdout is not None
        bridge.stdout.readline()

        with pytest.raises(PermissionError):
            Path(f"/proc/{bridge.pid}/environ").read_bytes()
        bridge.kill()


def test_its_children_run_and_their_markers_can_be_read(world: World) -> None:
    words = json.dumps([["sh", "-c", "echo ready; cat"], world.env, str(world.workspace)])
    run = subprocess.run([sys.executable, "-c", WORKING, words], capture_output=True, text=True)

    assert run.stdout.strip() == world.marker, run.stderr
