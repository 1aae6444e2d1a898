"""Attack 22: a hostile `.env` in the folder where somebody types a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.config.process import Surrounding, find_settings_file
from app.errors import ConfigurationError
from tests.support.bridge import DEMO

COMMAND = [sys.executable, "-m", "app"]
ROOT = Path(__file__).parents[2]
SECONDS = 60.0


class Cloned:
    """A repository that a stranger wrote, cloned by a person."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cloned"
        self.home = folder / "home"
        self.marker = folder / "ran"
        self.home.mkdir()
        # Not the checkout of whoever runs the tests, which may have settings of its own.
        self.package = folder / "package"
        self.package.mkdir()
        for name in ("app", "alembic"):
            (self.package / name).symlink_to(ROOT / name)
        self.git("init", "--quiet", str(self.folder), cwd=folder)
        trap = {"claude": {"command": ["sh", "-c", f"touch {self.marker}"], "sandbox": "none"}}
        self.dotenv = self.folder / ".env"
        self.dotenv.write_text(f"AGENTS_JSON='{json.dumps(trap)}'\n")
        self.dotenv.chmod(0o600)

    def git(self, *words: str, cwd: Path | None = None) -> None:
        subprocess.run(["git", *words], cwd=cwd or self.folder, check=True, capture_output=True)

    def ask(self, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """Ask an agent something while standing in the repository."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.package),
            "HOME": str(self.home),
            "DATA_DIR": str(self.home / "data"),
            **more,
        }
        return subprocess.run(
            [*COMMAND, "ask", "claude", "say hello"],
            cwd=cwd or self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture
def cloned(tmp_path: Path) -> Cloned:
    return Cloned(tmp_path)


def test_settings_that_came_with_a_repository_run_nothing(cloned: Cloned) -> None:
    """Attack 22."""
    cloned.git("add", "--force", ".env")

    done = cloned.ask()

    assert not cloned.marker.exists()
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{cloned.dotenv}: is tracked by git" in done.stderr
    assert "AGENT_BRIDGE_ENV_FILE" in done.stderr


def test_looking_at_a_hostile_repository_runs_nothing_of_it(cloned: Cloned) -> None:
    """Attack 22: the repository's own configuration would run a program."""
    cloned.git("add", "--force", ".env")
    trap = cloned.folder / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {cloned.marker}\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor"):
        cloned.git("config", name, str(trap))
    cloned.git("config", "alias.ls-files", f"!{trap}")

    done = cloned.ask()

    assert not cloned.marker.exists()
    assert "is tracked by git" in done.stderr


def test_a_folder_that_passes_itself_off_as_a_repository_is_refused(cloned: Cloned) -> None:
    """Attack 22: tracked files that look like a repository whose index knows nothing of `.env`."""
    inner = cloned.folder / "inner"
    cloned.git("init", "--quiet", "--bare", str(inner))
    cloned.git("config", "--file", str(inner / "config"), "core.bare", "false")
    cloned.git("config", "--file", str(inner / "config"), "core.worktree", str(inner))
    cloned.dotenv.rename(inner / ".env")

    done = cloned.ask(cwd=inner)

    assert not cloned.marker.exists()
    assert "git cannot tell whether it is tracked" in done.stderr


@pytest.mark.slow
def test_a_file_of_ones_own_in_the_current_folder_is_used_and_named(cloned: Cloned) -> None:
    entries = {"claude": {"command": DEMO, "sandbox": "none"}}
    cloned.dotenv.write_text(f"AGENTS_JSON='{json.dumps(entries)}'\n")
    away = {"AGENT_BRIDGE_ENV_FILE": str(cloned.dotenv)}

    here, named = cloned.ask(), cloned.ask(cwd=cloned.home, **away)

    assert (here.stdout, named.stdout) == ("hello\n", "hello\n"), here.stderr + named.stderr
    assert f"Settings from {cloned.dotenv}" in here.stderr
    assert "Settings from" not in named.stderr


def around(folder: Path, checkout: Path | None = None) -> Surrounding:
    return Surrounding(folder / "home", folder / "cwd", checkout, os.geteuid())


def lay(folder: Path, *names: str) -> list[Path]:
    """Write empty settings files."""
    files = [folder / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        file.chmod(0o600)
    return files


def test_fixed_places_come_before_the_current_folder(tmp_path: Path) -> None:
    named, own, home, here = lay(
        tmp_path, "named.env", "src/.env", "home/.config/agent-bridge/.env", "cwd/.env"
    )
    where = around(tmp_path, tmp_path / "src")

    assert find_settings_file({"AGENT_BRIDGE_ENV_FILE": str(named)}, where) == named
    assert find_settings_file({"AGENT_BRIDGE_ENV_FILE": "/dev/null"}, where) is None
    assert find_settings_file({}, where) == own
    assert find_settings_file({}, around(tmp_path)) == home
    home.unlink()
    assert find_settings_file({}, around(tmp_path)) == here
    here.unlink()
    assert find_settings_file({}, around(tmp_path)) is None


@pytest.mark.parametrize("name", ["cwd/.env", "home/.config/agent-bridge/.env", "named.env"])
def test_a_settings_file_that_others_can_write_is_refused(name: str, tmp_path: Path) -> None:
    """The table of configurations: `.env` with mode 666."""
    (file,) = lay(tmp_path, name)
    file.chmod(0o666)
    environ = {"AGENT_BRIDGE_ENV_FILE": str(file)} if name == "named.env" else {}

    with pytest.raises(ConfigurationError, match=r"is writable by other users.*chmod 600"):
        find_settings_file(environ, around(tmp_path))


def test_a_settings_file_of_another_user_in_the_current_folder_is_refused(tmp_path: Path) -> None:
    lay(tmp_path, "cwd/.env")
    where = around(tmp_path)
    someone = Surrounding(where.home, where.folder, None, user=12345)

    with pytest.raises(ConfigurationError, match="belongs to another user"):
        find_settings_file({}, someone)


@pytest.mark.parametrize("named", ["", "missing.env", "/no/such/file", "~/missing"])
def test_a_named_file_that_is_missing_is_refused(named: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not name a file"):
        find_settings_file({"AGENT_BRIDGE_ENV_FILE": named}, around(tmp_path))
