"""Describes a workspace for the page: repository, branch, changes, what was shipped; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.workspaces import WorkspaceView

SHORT_COMMIT = 12
"""Digits of a commit id: enough to find it in any repository."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a diff."""

    kind: Literal["add", "del", "file", "same"]
    text: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace as the page shows it."""

    title: str
    agent: str
    thread: str
    """The path of the thread it belongs to."""
    view: WorkspaceView
    lines: tuple[Line, ...]
    assets: Mapping[str, str]

    @property
    def sent(self) -> str:
        """The commit that was shipped last, abbreviated."""
        return self.view.sent[:SHORT_COMMIT]


def lines_of(diff: str) -> tuple[Line, ...]:
    """Classify each line of a diff."""
    return tuple(_line(text) for text in diff.splitlines())


def _line(text: str) -> Line:
    if text.startswith(("diff ", "+++ ", "--- ", "@@ ", "index ")):
        return Line("file", text)
    if text.startswith("+"):
        return Line("add", text)
    return Line("del" if text.startswith("-") else "same", text)
