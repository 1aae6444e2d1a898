"""Finds the settings file, and refuses one that another user could have written.

Settings decide which programs run. So the file has a fixed path; `.env` in the current folder
comes last, and counts only if the user owns it and it did not come with a git repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.config.ownership import find_writers
from app.errors import ConfigurationError

SETTING: Final = "AGENT_BRIDGE_ENV_FILE"
"""An environment variable: it cannot be given in the file that it names."""

_FILE: Final = ".env"
_GIT_SECONDS: Final = 10.0
"""Looking up one name in a large repository's index takes far less than a second."""
_ELSEWHERE: Final = (
    f"Move it to ~/.config/agent-bridge/.env, or name the file to use in {SETTING} "
    "(/dev/null for none)."
)

# A repository's own configuration must not run anything: neither its file system
# monitor nor the transport of a remote that git would get missing objects from.
_GIT_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_GIT: Final = (
    *("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    # A folder in the repository could pose as a bare repository with its own index.
    *("-c", "safe.bareRepository=explicit"),
)


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Where this process runs."""

    home: Path
    """The user's HOME."""
    folder: Path
    """The current folder."""
    checkout: Path | None
    """The checkout that the bridge itself runs from, if it is one."""
    user: int
    """The user id."""


def find_settings_file(environ: Mapping[str, str], around: Surrounding) -> Path | None:
    """Return the settings file in use, or None if there is none.

    Raises:
        ConfigurationError: the file is missing, or others could have written it.
    """
    if (named := environ.get(SETTING)) is not None:
        return _read_named(named, around.home)
    fixed = [default_settings_file(around.home)]
    if around.checkout is not None:
        fixed.insert(0, around.checkout / _FILE)
    here = around.folder / _FILE
    found = next((path for path in (*fixed, here) if path.exists()), None)
    if found is not None:
        _check_writers(found)
        if found not in fixed:
            _check_origin(found, environ, around.user)
    return found


def default_settings_file(home: Path) -> Path:
    """Return where settings are written if there is no file yet."""
    return home / ".config/agent-bridge" / _FILE


def checkout() -> Path | None:
    """Return the checkout that this package runs from; None if it is installed elsewhere."""
    root = Path(__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() else None


def _read_named(text: str, home: Path) -> Path | None:
    path = home / text.removeprefix("~/") if text.startswith("~/") else Path(text)
    if path == Path(os.devnull):
        return None
    if not path.is_absolute() or not path.is_file():
        raise ConfigurationError(
            SETTING, "does not name a file", "Write a path that starts with / or ~/."
        )
    _check_writers(path)
    return path


def _check_writers(path: Path) -> None:
    if found := find_writers(path):
        problem, remedy = found
        raise ConfigurationError(str(path), f"{problem}, who could run commands through it", remedy)


def _check_origin(path: Path, environ: Mapping[str, str], user: int) -> None:
    if {path.lstat().st_uid, path.stat().st_uid} != {user}:
        raise ConfigurationError(str(path), "belongs to another user", _ELSEWHERE)
    if not any((folder / ".git").exists() for folder in path.parents):
        return
    match _look_up(path, environ):
        case 0:
            problem = "is tracked by git, so the repository's authors could run commands through it"
        case 1:
            return
        case _:
            problem = "is in a git repository, and git cannot tell whether it is tracked"
    raise ConfigurationError(str(path), problem, _ELSEWHERE)


def _look_up(path: Path, environ: Mapping[str, str]) -> int | None:
    """Ask git whether it tracks a file; None if it cannot be asked."""
    environment = {"PATH": environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
    command = (*_GIT, "ls-files", "--error-unmatch", "--", path.name)
    try:
        return subprocess.run(
            command,
            cwd=path.parent,
            env=environment | _GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None
