"""What every test shares."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A machine that is busy with other tests is no reason to fail: bounds are the tests' own.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
