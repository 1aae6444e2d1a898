"""How much memory a session may use, and a bridge that no one of the same user can look into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.children import warden
from app.children.limits import default_memory_bytes
from tests.unit.children.conftest import World

GIBIBYTE = 1024**3
SECRETIVE = """
import sys
from app.children.limits import make_undumpable
print(make_undumpable(), flush=True)
sys.stdin.read()
"""

WORKING = """
import asyncio, json, sys
from pathlib import Path
from app.children.proc_table import marker_of
from app.children.limits import make_undumpable
from app.children.spawn import ChildCommand
from app.children.stop import StopSteps, running

async def main():
    make_undumpable()
    argv, env, cwd = json.loads(sys.argv[1])
    async with running(ChildCommand(tuple(argv)), name="agent", env=env, cwd=Path(cwd)) as child:
        assert await child.stdout.read(100) == b"ready\\n"
        print(marker_of(child.pid))

asyncio.run(main())
"""


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    (tmp_path / "system.slice" / "bridge.service").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/system.slice/bridge.service\n")
    return tmp_path


def half(cgroups: Path) -> int:
    return default_memory_bytes(cgroups / "own", cgroups)


def test_a_service_shares_what_its_unit_allows(cgroups: Path) -> None:
    (cgroups / "system.slice" / "bridge.service" / "memory.max").write_text(f"{GIBIBYTE}\n")
    (cgroups / "system.slice" / "memory.max").write_text("max\n")

    assert half(cgroups) == GIBIBYTE // 2


def test_the_smallest_limit_around_a_service_counts(cgroups: Path) -> None:
    (cgroups / "system.slice" / "bridge.service" / "memory.max").write_text(f"{GIBIBYTE}\n")
    (cgroups / "system.slice" / "memory.max").write_text(f"{GIBIBYTE // 2}\n")

    assert half(cgroups) == GIBIBYTE // 4


def test_a_container_sees_its_own_limit_at_the_top(cgroups: Path) -> None:
    (cgroups / "own").write_text("0::/\n")
    (cgroups / "memory.max").write_text(f"{GIBIBYTE}\n")

    assert half(cgroups) == GIBIBYTE // 2


def test_without_cgroups_it_is_half_of_the_machine(tmp_path: Path) -> None:
    assert half(tmp_path) > GIBIBYTE // 4


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


def test_a_path_that_leads_elsewhere_by_now_counts_for_nothing(tmp_path: Path) -> None:
    at = tmp_path.stat().st_dev
    device = f"{os.major(at)}:{os.minor(at)}"

    assert warden._used_bytes(str(tmp_path), device) > 0
    assert warden._used_bytes(str(tmp_path), "0:1") == 0
    assert warden._used_bytes(str(tmp_path / "gone"), device) == 0
