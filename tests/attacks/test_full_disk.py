"""A disk that takes nothing more: the bridge says that it is not ready, and is again by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import BridgeProcess
from tests.support.platform import Platform

DISK = "size=24m,mode=700"
ROUNDS = 50


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(folder)]
    if (tried := subprocess.run(mount, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with file.open("wb", buffering=0) as big:
        for size in (1024 * 1024, 4096):
            try:
                while big.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue


def store_check(http: httpx.Client) -> tuple[int, dict[str, object]]:
    answer = http.get("/readyz")
    checks = {check["name"]: check for check in answer.json()["checks"]}
    return answer.status_code, checks["store"]


def test_a_bridge_on_a_full_disk_is_not_ready_until_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    """Attack 19."""
    with Platform() as platform, BridgeProcess(tmp_path, platform) as bridge:
        bridge.wait(lambda: bridge.http.get("/readyz").is_success, "it does not get ready")

        # The bridge gives its reserve to the store first, so that is filled as well.
        full = store_check(bridge.http)
        for number in range(ROUNDS):
            fill(small_disk / f"big{number}")
            full = store_check(bridge.http)
            if full[0] != 200:
                break
        for big in small_disk.glob("big*"):
            big.unlink()
        again = store_check(bridge.http)

    assert full == (503, {"name": "store", "ok": False, "words": full[1]["words"]})
    assert "disk is full" in str(full[1]["words"])
    assert again == (200, {"name": "store", "ok": True, "words": ""})


def test_asking_whether_it_is_ready_leaves_nothing_behind(tmp_path: Path) -> None:
    with Platform() as platform, BridgeProcess(tmp_path, platform) as bridge:
        assert {bridge.http.get("/readyz").status_code for _ in range(5)} <= {200, 503}
        bridge.wait(lambda: bridge.http.get("/readyz").is_success, "it does not get ready")

        assert bridge.rows("select count(*) from sealed") == [(0,)]
