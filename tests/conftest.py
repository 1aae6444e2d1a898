"""What every test shares."""

from __future__ import annotations

import pytest
from hypothesis import settings

SLOW_SECONDS = 600
"""The bound of a slow test; `timeout` in pyproject.toml is that of a quick one."""

# A machine that is busy with other tests is no reason to fail: bounds are the tests' own.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
