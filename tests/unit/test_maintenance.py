"""What the bridge sees to beside its work goes on, whatever happens to it once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.agents.files import AgentFiles
from app.config import Settings
from app.features.memory.service import Memory
from app.features.memory.store import MemoryStore
from app.main.maintenance import RETENTION_SECONDS, Maintenance
from app.signals import ALONE
from app.store.upkeep import DAY_SECONDS
from app.tasks import Tasks
from app.vault import Vault
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
    settings = Settings()
    with open_stores(tmp_path, clock) as (database, stores):
        base: Any = SimpleNamespace(
            clock=clock,
            database=database,
            stores=stores,
            configuration=SimpleNamespace(settings=settings),
        )
        tasks = Tasks("test")
        parts: Any = (base, workspaces, tmp_path / "uploads", [])
        tasks.start(Maintenance(*parts).reap(), name="upkeep")
        await clock.asleep(1)
        await clock.advance(RETENTION_SECONDS)
        await clock.asleep(1)
        await tasks.close()

    assert len(workspaces.times) == 2


class Recorded:
    """Remembers up to when it was told to remove what is old."""

    def __init__(self) -> None:
        self.before: list[float] = []

    async def reap(self, *, before: float) -> Sequence[str]:
        self.before.append(before)
        return ()


class Feature:
    """Remembers how often it was told to delete what is old."""

    def __init__(self) -> None:
        self.times = 0

    async def expire(self) -> None:
        self.times += 1


async def test_each_kind_is_kept_for_its_own_time(tmp_path: Path) -> None:
    clock, work, feature = ManualClock(), Recorded(), Feature()
    files = AgentFiles(tmp_path, Vault())
    for day, text in (("2001-01-01", "pelican"), ("2001-01-01", "heron"), ("2999-01-01", "later")):
        files.write("demo", f"memory/{day}.md", text)
    settings = Settings(retention_work_days=3, retention_memory_days=365)
    with open_stores(tmp_path, clock) as (database, stores):
        store = stores.open(MemoryStore)
        await store.index("demo", "2001-01-01", "v", [("x", "pelican")])
        base: Any = SimpleNamespace(
            clock=clock,
            database=database,
            stores=stores,
            files=files,
            configuration=SimpleNamespace(settings=settings, agents={"demo": None}),
            signals=ALONE,
        )
        tasks = Tasks("test")
        parts: Any = (base, work, tmp_path / "uploads", [feature, Memory(base)])
        maintenance = Maintenance(*parts)
        tasks.start(maintenance.forget(), name="retention")
        tasks.start(maintenance.reap(), name="unused workspaces")
        await clock.asleep(2)
        found = await store.search("demo", ["pelican"], every=True, limit=9)
        await tasks.close()

    assert work.before == [clock.now() - 3 * DAY_SECONDS]
    assert feature.times == 1
    assert [each.path for each in files.list_files("demo")] == ["memory/2999-01-01.md"]
    assert files.versions("demo", "memory/2001-01-01.md") == []
    assert found == []
