"""Decides where `ask` works: in the person's git work tree, a repository, a folder, or none.

Without an option it works in the work tree it is started in if the person said so once for that
folder; where no one can be asked, it keeps to a folder of the agent's own and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.errors import Conflict
from app.model.workspaces import FOLDER, NONE

ANSWERS: Final = "work-trees.json"
"""The file in DATA_DIR with what the person answered for each work tree."""

Confirm = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Where:
    """Where to work, as the API takes it; None leaves it to the settings."""

    repository: str | None = None
    hint: str = ""
    """How to choose otherwise, if that was decided without a person."""


def named(*, repository: str | None, folder: Path | None, here: bool, scratch: bool) -> str | None:
    """Return where the options say to work; None if they say nothing.

    Raises:
        Conflict: there is no such folder, or it is not the person's.
    """
    if here:
        folder = work_tree(Path.cwd()) or Path.cwd()
    if folder is not None:
        return f"{FOLDER}{_own(folder)}"
    return NONE if scratch else repository


def usual(data_dir: Path, confirm: Confirm | None) -> Where:
    """Decide for a person who named nothing; `confirm` asks them, if they can be asked."""
    tree = work_tree(Path.cwd())
    if tree is None or tree == Path.home():
        return Where()
    answers = _read(data_dir / ANSWERS)
    known = answers.get(str(tree))
    if known is None and confirm is not None:
        known = confirm(f"Work in {tree}?")
        _write(data_dir / ANSWERS, {**answers, str(tree): known})
    if known is None:
        return Where(hint=f"to work in {tree}, add --here")
    return Where(f"{FOLDER}{tree}" if known else None)


def work_tree(folder: Path) -> Path | None:
    """Find the git work tree that a folder belongs to."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def words(repository: str | None) -> str:
    """Say where a session works."""
    match repository:
        case None:
            return ""
        case "none":
            return "Working in an empty folder"
        case folder if folder.startswith(FOLDER):
            return f"Working in {folder.removeprefix(FOLDER)}"
        case name:
            return f"Working in a clone of {name}"


def _own(folder: Path) -> Path:
    path = folder.expanduser().resolve()
    if not path.is_dir():
        raise Conflict(f"there is no folder {str(path)!r}")
    if os.geteuid() not in {0, path.stat().st_uid}:
        raise Conflict(f"{str(path)!r} belongs to another user; choose a folder of yours")
    return path


def _read(path: Path) -> dict[str, bool]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {tree: answer for tree, answer in pairs if isinstance(answer, bool)}


def _write(path: Path, answers: dict[str, bool]) -> None:
    # An answer that cannot be kept is asked for again.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(answers, indent=2))
        fresh.replace(path)
