"""Setting up: what happens on a machine that lacks something, and what a second time costs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Stands in for an interpreter: keeps a transcript of its arguments and makes a `.venv` that holds
# a copy of itself.
PYTHON = """#!/bin/sh
echo "$*" >> "{transcript}"
case "$*" in
    *version_info*) echo "{version}" ;;
    *ensurepip*) exit {ensurepip} ;;
    *"-m venv"*)
        mkdir -p .venv/bin && cp "$0" .venv/bin/python
        echo "command = python3 -m venv --clear $PWD/.venv" > .venv/pyvenv.cfg ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder with the real Makefile and a Python that only pretends."""

    folder: Path
    python: Path
    transcript: Path

    def pretend(self, *, version: str = "3.12", ensurepip: int = 0) -> None:
        words = PYTHON.format(transcript=self.transcript, version=version, ensurepip=ensurepip)
        self.python.write_text(words)
        self.python.chmod(0o755)

    def setup(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", "setup", f"PYTHON={self.python}"],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=5,
        )

    def calls(self) -> list[str]:
        calls = self.transcript.read_text().splitlines()
        self.transcript.write_text("")
        return calls


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout", tmp_path / "python", tmp_path / "transcript")
    made.folder.mkdir()
    made.transcript.touch()
    made.pretend()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, made.folder / name)
    return made


def test_a_fresh_checkout_installs_what_is_locked_and_then_itself(checkout: Checkout) -> None:
    result = checkout.setup()

    assert result.stdout.splitlines() == [
        "Setting up .venv (once, about a minute) ...",
        "Ready: .venv/bin/agent-bridge",
    ]
    assert [call.partition("install ")[2] for call in checkout.calls()[-2:]] == [
        "--require-hashes -r requirements.lock",
        "--no-deps --no-build-isolation -e .",
    ]


def test_the_second_time_starts_no_python_at_all(checkout: Checkout) -> None:
    checkout.setup()
    checkout.calls()

    assert checkout.setup().stdout == "Ready: .venv/bin/agent-bridge\n"
    assert checkout.calls() == []


def test_a_changed_lock_file_is_installed_into_the_environment_that_is_there(
    checkout: Checkout,
) -> None:
    checkout.setup()
    checkout.calls()
    later = (checkout.folder / ".venv/.run").stat().st_mtime + 1
    os.utime(checkout.folder / "requirements.lock", (later, later))

    assert checkout.setup().stdout.startswith("Bringing .venv up to date ...\n")
    assert not any("-m venv" in call for call in checkout.calls())


def test_an_environment_that_came_with_a_copied_folder_is_made_anew(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.setup()
    checkout.folder.rename(tmp_path / "moved")
    moved = Checkout(tmp_path / "moved", checkout.python, checkout.transcript)

    assert moved.setup().stdout.startswith("Setting up .venv")
    assert moved.setup().stdout == "Ready: .venv/bin/agent-bridge\n"


@pytest.mark.parametrize("version", ["2.7", "3.9", "3.10"])
def test_an_old_python_is_named_in_one_line(checkout: Checkout, version: str) -> None:
    checkout.pretend(version=version)

    result = checkout.setup()

    line, make_says = result.stderr.splitlines()
    assert result.returncode != 0
    assert line.startswith(f"Python 3.11 or newer is needed, {checkout.python} is {version}:")
    assert make_says.startswith("make: ***")


def test_a_missing_venv_module_is_named_in_one_line(checkout: Checkout) -> None:
    checkout.pretend(ensurepip=1)

    result = checkout.setup()

    line, make_says = result.stderr.splitlines()
    assert result.returncode != 0
    assert line.startswith("python3-venv is missing: apt install python3-venv")
    assert make_says.startswith("make: ***")


def test_a_missing_python_is_named_in_one_line(checkout: Checkout) -> None:
    checkout.python.unlink()

    result = checkout.setup()

    assert result.stderr.splitlines()[0].startswith(f"{checkout.python} was not found:")


def test_no_lock_file_names_a_registry() -> None:
    locks = [path.read_text() for path in ROOT.glob("requirements*.lock")]

    assert len(locks) == 3
    assert not any("://" in text or "\n-" in text for text in locks)
