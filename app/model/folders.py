"""Holds a saved folder, as a value."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath

from app.model.types import Session


@dataclass(frozen=True, slots=True)
class SavedFolder:
    """One folder of a session as it was saved last."""

    session: int
    kind: str
    saved: str
    """The name of what was saved."""
    machine: str
    """The machine whose disk has it."""


def folder_name(session: Session) -> str:
    """Name the folders that belong to a session alone: its workspace, its home."""
    return f"{session.id}-{session.key.agent}"


def attachment_folder(workspace: Path) -> Path:
    """Name the attachment folder of a workspace."""
    return workspace.with_name(f"{workspace.name}.files")


def outgoing(workspace: Path) -> Path:
    """Name the folder of a workspace for outgoing files."""
    return workspace.with_name(f"{workspace.name}.out")


def is_folder_below(root: Path, name: str) -> bool:
    """Tell whether a name is that of a folder below another one, wherever links lead."""
    relative = PurePath(name)
    if relative.is_absolute() or ".." in relative.parts or not name.isprintable():
        return False
    # Unlike those of pathlib, these raise nothing for a circle of links or a name too long.
    real = os.path.realpath(root / relative)
    return PurePath(real).is_relative_to(os.path.realpath(root)) and os.path.isdir(real)  # noqa: PTH112
