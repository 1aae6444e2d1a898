"""The first program of every child; what it does is tested through the sandboxes that use it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys

import pytest

from app.children import entry

SLOW_TO_LOAD = {"contextlib", "ctypes", "enum", "pathlib", "re", "signal", "socket", "subprocess"}


@pytest.mark.skipif(sys.platform != "linux", reason="there is a reaper on Linux only")
def test_every_agent_waits_for_it_so_it_imports_nothing_that_is_slow_to_load() -> None:
    python = [os.path.realpath(sys.executable), "-I", "-S", "-X", "importtime", "-c"]
    words = [f"reap={os.getpid()}", "nofile=64", "oom=500", "--", "true"]

    done = subprocess.run(
        [*python, inspect.getsource(entry), *words], capture_output=True, text=True, check=True
    )

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"_signal", "_ctypes", "resource"} <= imported
    assert imported & SLOW_TO_LOAD == set()
