"""`doctor` tries what several machines share, and tells when services were not heard."""

from __future__ import annotations

from pathlib import Path

from app.config.configuration import load
from app.features.doctor.machine import check_gaps, check_sharing
from app.model.inbound import Gap
from app.services.service import Finding
from app.store.database import Database
from app.store.stores import Stores


async def check(tmp_path: Path, settings: dict[str, str]) -> list[Finding]:
    own = {"PATH": "", "DATA_DIR": f"{tmp_path}/data"}
    configuration = load({**own, **settings}, home=tmp_path / "home")
    return [finding async for finding in check_sharing(configuration)]


async def test_a_single_machine_has_nothing_to_check(tmp_path: Path) -> None:
    assert await check(tmp_path, {}) == []


async def test_a_shared_folder_is_tried_and_left_as_it_was(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)

    (found,) = await check(tmp_path, {"SHARED_DIR": str(shared)})

    assert (found.verdict, found.what) == ("ok", "SHARED_DIR")
    assert list(shared.iterdir()) == []


async def test_a_worker_without_a_shared_folder_is_warned_of(tmp_path: Path) -> None:
    fleet = {"DATABASE_URL": "postgresql://bridge@db/bridge", "ROLE": "worker"}

    (found,) = await check(tmp_path, fleet)

    assert (found.verdict, found.what) == ("warning", "SHARED_DIR")


async def test_gaps_of_the_last_day_are_told_and_older_ones_are_not(tmp_path: Path) -> None:
    own = {"PATH": "", "DATA_DIR": str(tmp_path / "data")}
    configuration = load(own, home=tmp_path / "home")
    assert [found async for found in check_gaps(configuration, 0.0)] == []
    now = 1_800_000_000.0
    (tmp_path / "data").mkdir()
    database = Database(configuration.database_url)
    database.open()
    gaps = Stores.on(database, lambda: now).gaps
    await gaps.add(Gap(now - 200_000, now - 190_000, "socket", "slack:claude"))
    await gaps.add(Gap(now - 7_200, now - 3_600, "hook", "github:claude"))
    database.close()

    (found,) = [found async for found in check_gaps(configuration, now)]

    assert (found.verdict, found.what) == ("warning", "github:claude")
    assert "the webhook of Github failed from" in found.reason
    assert "agent-bridge why" in found.remedy
