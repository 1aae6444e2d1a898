"""`doctor` tries what the bridges of several machines share."""

from __future__ import annotations

from pathlib import Path

from app.config.configuration import load
from app.features.doctor.machine import check_sharing
from app.services.service import Finding


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
