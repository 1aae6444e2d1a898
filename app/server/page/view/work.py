"""Describes where the agents of a thread work, and what came of it: repository to checks; pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.model.workspaces import FOLDER, NONE, Changes, WorkspaceView

_OUTCOMES = {"merged": ("merged", "acc"), "closed": ("closed", "")}
_CHECKS = {
    "running": ("checks running", "warn"),
    "passed": ("checks passed", "good"),
    "failed": ("checks failed", "bad"),
}
_REVIEWS = {"approved": ("approved", "good"), "changes": ("changes requested", "warn")}


@dataclass(frozen=True, slots=True)
class Work:
    """Where one agent works, or several that share it."""

    agent: str
    name: str
    title: str
    session: int = 0
    """The session whose page shows the changes."""
    is_folder: bool = False
    web: str = ""
    """The address of its repository."""
    branch: str = ""
    base: str = ""
    is_pushed: bool = False
    pull: str = ""
    """The address of its pull request."""
    marks: tuple[tuple[str, str], ...] = ()
    """State, checks and review of the pull request: the words of each, and its colour."""
    changes: Changes | None = None
    """How much changed; None if that is not known."""

    @property
    def key(self) -> tuple[str, str]:
        """What is the same for agents that share it."""
        return self.title, self.branch

    @property
    def pull_name(self) -> str:
        """What people call the pull request."""
        number = self.pull.rstrip("/").rpartition("/")[2]
        return f"#{number}" if number.isdigit() else "pull request"


def short_name(written: str) -> str:
    """Shorten where a thread works to what a chip shows: the last part of a folder's path."""
    if written.startswith(FOLDER):
        return written.rstrip("/").rpartition("/")[2]
    return "" if written == NONE else written


def work_of(agent: str, session: int, view: WorkspaceView) -> Work:
    """Describe the workspace of a session."""
    match view.kind:
        case "empty":
            return Work(agent, "", "None. Files are in a scratch folder.", session)
        case "folder":
            return Work(agent, short_name(view.written), view.name, session, is_folder=True)
    return Work(
        agent,
        view.name,
        view.name,
        session,
        web=view.web,
        branch=view.branch,
        base=view.base,
        is_pushed=bool(view.sent),
        pull=view.link,
        marks=_marks(view),
        changes=view.changes,
    )


def _marks(view: WorkspaceView) -> tuple[tuple[str, str], ...]:
    state = _OUTCOMES.get(view.outcome)
    if state is not None:
        return (state,)
    more = (_CHECKS.get(view.judged.checks), _REVIEWS.get(view.judged.review))
    return (("open", "good"), *filter(None, more))
