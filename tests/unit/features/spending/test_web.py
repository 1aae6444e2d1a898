"""What the API shows of today's costs: limits beside them, agents under their names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import insert

from app.config import Settings
from app.features.spending.web import DailySpending, list_spending
from app.store import tables
from tests.support.clock import ManualClock
from tests.support.memory import open_stores

pytestmark = pytest.mark.anyio


async def test_costs_of_today_are_listed_with_their_limits(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = Settings(budget_day_usd=5, time_zone="Europe/Berlin")
    configuration = SimpleNamespace(settings=settings, surroundings={})
    with open_stores(tmp_path, clock) as (database, stores):
        runtime: Any = SimpleNamespace(
            clock=clock,
            stores=stores,
            configuration=configuration,
            agents=SimpleNamespace(name={"a1": "claude"}.get),
        )
        daily = DailySpending(runtime)
        today, yesterday = (daily.limits.day_of(clock.now() - ago) for ago in (0, 86_400))
        with database.engine.begin() as connection:
            rows = [
                ("day", "", 3.00004, today),
                ("agent", "a1", 2, today),
                ("day", "", 9, yesterday),
                ("day", "", 9, daily.limits.day_of(clock.now() - 2 * 86_400)),
            ]
            for share, name, usd, day in rows:
                row = {"day": day, "share": share, "name": name, "usd": usd}
                connection.execute(insert(tables.spending), row)
        shown = await list_spending(runtime, daily)
        longer = await list_spending(runtime, daily, days=2)

    assert [tuple(each.model_dump().values()) for each in shown.items] == [
        (today, "day", "", 3.0, 5.0),
        (today, "agent", "claude", 2.0, None),
    ]
    assert [(each.day, each.usd) for each in longer.items] == [
        (today, 3.0),
        (today, 2.0),
        (yesterday, 9.0),
    ]
