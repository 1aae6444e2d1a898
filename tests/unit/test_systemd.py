"""The systemd unit: valid, hardened, and without what would take isolation from agents."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy" / "agent-bridge.service"
SETTINGS = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
BREAKS_BUBBLEWRAP = {
    "RestrictNamespaces",  # it makes a user namespace first
    "ProtectKernelTunables",  # the kernel mounts no new /proc while parts of the old one are masked
    "ProtectKernelLogs",
    "ProcSubset",
    "MemoryDenyWriteExecute",  # node, which most agents run on, compiles to memory
}
LARGEST_EXPOSURE = 3.5
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def analyze(tmp_path: Path, *words: str) -> str:
    """Ask systemd about the unit, as if its program were installed."""
    unit = tmp_path / UNIT.name
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text()))
    done = subprocess.run(
        ["systemd-analyze", "--no-pager", *words, str(unit)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
def test_systemd_takes_the_unit_without_a_word(tmp_path: Path) -> None:
    assert analyze(tmp_path, "verify") == ""


@needs_systemd
def test_little_is_left_open(tmp_path: Path) -> None:
    told = analyze(tmp_path, "security", "--offline=true")

    exposure = re.search(r"Overall exposure level for \S+ ([0-9.]+)", told)
    assert exposure is not None
    assert float(exposure[1]) <= LARGEST_EXPOSURE


def test_nothing_takes_isolation_from_agents() -> None:
    assert BREAKS_BUBBLEWRAP.isdisjoint(SETTINGS)
    assert "@mount" in SETTINGS["SystemCallFilter"]
    assert "AF_NETLINK" in SETTINGS["RestrictAddressFamilies"]
    assert SETTINGS["OOMPolicy"] == "continue"


def test_the_machine_keeps_memory_and_processes_for_itself() -> None:
    assert SETTINGS["MemoryMax"] == "80%"
    assert int(SETTINGS["TasksMax"]) == 8192
