"""What the bridge sees to beside its work goes on, whatever happens to it once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.tasks import Tasks
from app.main.maintenance import RETENTION_SECONDS, Maintenance
from tests.support.clock import ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio


class Workspaces:
    """Workspaces that cannot be looked through the first time."""

    def __init__(self) -> None:
        self.times: list[float] = []

    async def reap(self, *, before: float) -> Sequence[str]:
        self.times.append(before)
        if len(self.times) == 1:
            raise OSError("the disk is not there")
        return ()


async def test_what_is_old_is_looked_for_again_after_a_failure(tmp_path: Path) -> None:
    clock, workspaces = ManualClock(), Workspaces()
    limits = SimpleNamespace(retention_days=30)
    with open_stores(tmp_path, clock) as (database, stores):
        base: Any = SimpleNamespace(
            clock=clock,
            database=database,
            stores=stores,
            configuration=SimpleNamespace(limits=limits),
        )
        tasks = Tasks("test")
        tasks.start(Maintenance(base, workspaces, tmp_path / "uploads").forget(), name="upkeep")  # type: ignore[arg-type]  # all that is asked of it
        await clock.asleep(1)
        await clock.advance(RETENTION_SECONDS)
        await clock.asleep(1)
        await tasks.close()

    assert len(workspaces.times) == 2
