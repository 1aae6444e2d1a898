"""Packages that come with others: none is vulnerable unseen, and none runs in the bridge unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 300.0
NOWHERE = "http://127.0.0.1:9"
"""A proxy at which nothing listens: no look-up leaves this machine."""
ADVISORIES = """
import json, sys
bug = {"id": "PYSEC-2026-1", "fix_versions": ["99"]}
found = {"name": "protobuf", "version": "1", "vulns": [bug] * ("-image" in sys.argv[2])}
print(json.dumps({"dependencies": [found]}))
"""
"""Stands for pip-audit on the day on which what the image alone pins is found vulnerable."""
FEATURE = """
from pathlib import Path
from app.features.feature import Feature
Path(__file__).with_name("ran").touch()
FEATURE = Feature(name="stowaway", package=__name__)
"""
SERVICE = """
from pathlib import Path
from app.services.slack import SERVICE as SLACK
from dataclasses import replace
Path(__file__).with_name("ran").touch()
SERVICE = replace(SLACK, name="stowaway")
"""


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the product in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.long
def test_who_cuts_off_the_advisories_does_not_make_the_audit_pass(tmp_path: Path) -> None:
    cut = {"HTTPS_PROXY": NOWHERE, "HTTP_PROXY": NOWHERE, "HOME": str(tmp_path)}

    audited = run("tests.support.audit", **cut)

    assert audited.returncode == 1, audited.stdout
    assert "audit: 0 dependencies looked up" in audited.stdout


def test_a_vulnerable_package_in_the_image_alone_fails_the_audit(tmp_path: Path) -> None:
    (tmp_path / "pip_audit.py").write_text(ADVISORIES)

    audited = run("tests.support.audit", PYTHONPATH=str(tmp_path))

    assert audited.returncode == 1, audited.stdout
    assert "protobuf 1: PYSEC-2026-1" in audited.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "code"), [("features", FEATURE), ("services", SERVICE)], ids=["feature", "service"]
)
def test_no_package_runs_in_the_bridge_without_being_listed(
    kind: str, code: str, tmp_path: Path
) -> None:
    """It came as the dependency of a dependency; its entry point has every command import it."""
    about = tmp_path / "innocent-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: innocent\nVersion: 1.0\n")
    attribute = kind.removesuffix("s").upper()
    (about / "entry_points.txt").write_text(f"[agent_bridge.{kind}]\nx = innocent:{attribute}\n")
    (tmp_path / "innocent.py").write_text(code)

    doctor = run(
        *("app", "doctor"),
        PYTHONPATH=str(tmp_path),
        HOME=str(tmp_path / "home"),
        DATA_DIR=str(tmp_path / "data"),
        AGENT_BRIDGE_ENV_FILE="/dev/null",
    )

    assert (tmp_path / "ran").exists()
    assert "plug-in: x from innocent 1.0 runs as part of the bridge" in doctor.stdout
