"""What every test shares."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

SLOW_SECONDS = 600
"""The bound of a slow test; `timeout` in pyproject.toml is that of a quick one."""

NEEDED_BYTES = 6 * 1024**3
"""Of all tests together, and above that at which a bridge no longer begins a turn."""

# A machine that is busy with other tests is no reason to fail: bounds are the tests' own.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_sessionstart() -> None:
    free = shutil.disk_usage(folder := tempfile.gettempdir()).free
    if free < NEEDED_BYTES:
        pytest.exit(f"only {free >> 20} MB free in {folder}, {NEEDED_BYTES >> 20} MB needed", 1)
    if os.environ.get("TEST_DATABASE") == "postgresql":
        from tests.support.postgres import find_programs  # 0.3 s that few runs need

        if find_programs() is None:
            pytest.exit("no PostgreSQL on this machine: install Debian's postgresql", 1)


def pytest_collection_finish() -> None:
    # Thousands of tests are no garbage: every collection would look at all of them again.
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
