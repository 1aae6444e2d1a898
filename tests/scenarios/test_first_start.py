"""A first start that is killed at any moment: the next one goes on from what it left."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.nursery import Fork, nursery
from tests.support.postgres import only_on_files
from tests.support.served import PLAIN_PATH
from tests.support.variants import quick

READY = b"To open the page"
SECONDS = 60.0
LOOK_SECONDS = 0.01
KILLS = 10


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Fork]:
    """Run `agent-bridge serve`, killed at the end at the latest."""
    environment = {
        "PATH": PLAIN_PATH,
        "HOME": str(folder),
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
    }
    with (folder / "serve.log").open("wb") as log, Path(os.devnull).open() as nothing:
        files = (nothing.fileno(), log.fileno(), log.fileno())
        fork = nursery().begin("serve", environment=environment, cwd=folder, files=files)
    try:
        yield fork
    finally:
        fork.kill()
        fork.wait(SECONDS)


def start(folder: Path, port: int) -> str:
    """Start a bridge until it says how to open its page; return what it said if it ends before."""
    with serving(folder, port) as fork:
        while READY not in (said := (folder / "serve.log").read_bytes()):
            with suppress(subprocess.TimeoutExpired):
                fork.wait(LOOK_SECONDS)
                return said.decode()
    return ""


@only_on_files("a first start makes no database there")
@pytest.mark.parametrize("seed", quick(1, range(20)))
def test_a_first_start_that_is_killed_at_a_random_moment_starts_again(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        folders = [tmp_path / str(number) for number in range(KILLS + 1)]
        for folder in folders:
            folder.mkdir()
        nursery().run("--version", environment={}, cwd=tmp_path)  # it imports everything first
        began = time.monotonic()
        assert start(folders.pop(), port) == ""
        seconds = time.monotonic() - began

        for folder in folders:
            with serving(folder, port) as fork, suppress(subprocess.TimeoutExpired):
                fork.wait(chance.uniform(0.0, seconds))

        assert {folder.name: said for folder in folders if (said := start(folder, port))} == {}
