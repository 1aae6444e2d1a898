"""What the tests of GitHub share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sim.github.world import SimulatedGithub
from tests.support.clock import HastyClock
from tests.support.github_desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    with SimulatedGithub(tmp_path) as github:
        made = Desk(github, HastyClock())
        yield made
        await made.close()
