"""Reads what the owner of a folder has told git about files, as far as the agent cannot write it.

Git only reads its configuration here. The files of these settings are shown to git in the agent's
isolation by their paths and never copied, so it reads no more than its user may.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.repos.git import Git

_VALUES: Final = frozenset(
    f"core.{name}"
    for name in ("autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "symlinks")
)
_FILES: Final = {"core.excludesFile": "ignore", "core.attributesFile": "attributes"}
"""Settings that name a file, with the name of the usual one."""
_FILTERS: Final = frozenset({"clean", "process"})
"""What turns a file into what git stores; without `required`, a failing one counts as none."""


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """How the owner's git looks at files."""

    settings: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    """What git must see for that."""


async def read_owner_settings(
    git: Git, folder: Path, repository: Path | None, person: Mapping[str, str]
) -> OwnerSettings:
    """Read the settings of a folder's owner, and of its repository if the agent cannot write it.

    Raises:
        GitFailed: git cannot read them.
    """
    home, config = _home_of(folder, person)
    named = [Path("/etc/gitconfig"), config / "git" / "config", home / ".gitconfig"]
    named += [] if repository is None else [repository / "config"]
    included = "".join(f"[include]\n\tpath = {_quote(path)}\n" for path in named)
    listed = await git.run(
        repository or Path("/"),
        *("config", "--file", "-", "--includes", "--list", "-z"),
        given=included.encode(errors="surrogateescape"),
        more={"HOME": str(home)},
    )
    entries = listed.decode(errors="surrogateescape").split("\0")
    told = {key: value for key, _, value in (entry.partition("\n") for entry in entries)}
    chosen = {key: value for key, value in told.items() if key in _VALUES or _is_filter(key)}
    files: list[Path] = []
    for key, usual in _FILES.items():
        value = told.get(key.lower(), str(config / "git" / usual))
        path = folder / (home / value[2:] if value.startswith("~/") else value)
        chosen[key] = str(path) if os.access(path, os.R_OK) else os.devnull
        files += [path] if path.is_file() else []
    return OwnerSettings(chosen, tuple(files))


def _home_of(folder: Path, person: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the home of a folder's owner, and where their settings are."""
    owner = folder.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        try:
            home = Path(pwd.getpwuid(owner).pw_dir)
        except KeyError:
            home = Path("/nonexistent")
        return home, home / ".config"
    home = Path(person.get("HOME", "/nonexistent"))
    return home, Path(person.get("XDG_CONFIG_HOME") or home / ".config")


def _is_filter(key: str) -> bool:
    return key.startswith("filter.") and key.rpartition(".")[2] in _FILTERS


def _quote(path: Path) -> str:
    """Write a path as git's configuration has it."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
