"""How much memory a session may use if no one says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.children.limits import default_memory_bytes

GIBIBYTE = 1024**3


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    (tmp_path / "system.slice" / "bridge.service").mkdir(parents=True)
    (tmp_path / "own").write_text("0::/system.slice/bridge.service\n")
    return tmp_path


def half(cgroups: Path) -> int:
    return default_memory_bytes(cgroups / "own", cgroups)


def test_a_service_shares_what_its_unit_allows(cgroups: Path) -> None:
    (cgroups / "system.slice" / "bridge.service" / "memory.max").write_text(f"{GIBIBYTE}\n")
    (cgroups / "system.slice" / "memory.max").write_text("max\n")

    assert half(cgroups) == GIBIBYTE // 2


def test_the_smallest_limit_around_a_service_counts(cgroups: Path) -> None:
    (cgroups / "system.slice" / "bridge.service" / "memory.max").write_text(f"{GIBIBYTE}\n")
    (cgroups / "system.slice" / "memory.max").write_text(f"{GIBIBYTE // 2}\n")

    assert half(cgroups) == GIBIBYTE // 4


def test_a_container_sees_its_own_limit_at_the_top(cgroups: Path) -> None:
    (cgroups / "own").write_text("0::/\n")
    (cgroups / "memory.max").write_text(f"{GIBIBYTE}\n")

    assert half(cgroups) == GIBIBYTE // 2


def test_without_cgroups_it_is_half_of_the_machine(tmp_path: Path) -> None:
    assert half(tmp_path) > GIBIBYTE // 4
