"""Keeps agents' daily logs among their files: memory that is searched, never sent as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date

from app.agents.files import AgentFiles, log_of
from app.errors import NotFound


class DailyLogs:
    """The memory files of all agents; every call blocks."""

    def __init__(self, files: AgentFiles) -> None:
        self._files = files

    def days(self, agent: str) -> Mapping[str, str]:
        """Return the version of each daily log."""
        return {
            file.path.removesuffix(".md").rpartition("/")[2]: f"{file.changed_at}-{file.size}"
            for file in self._files.list_files(agent)
            if "/" in file.path
        }

    def log(self, agent: str, day: str) -> str:
        """Read a daily log; empty if there is none.

        Raises:
            NotFound: this is not a day.
        """
        file = self._files.read(agent, _path(day))
        return "" if file is None else file.text

    def change_log(self, agent: str, day: str, change: Callable[[str], str]) -> None:
        """Replace a daily log by what a function makes of it; an empty one is removed.

        Raises:
            NotFound: this is not a day.
        """
        path = _path(day)
        if not self._files.change(agent, path, change).text.strip():
            self._files.delete(agent, path)


def _path(day: str) -> str:
    try:
        return log_of(date.fromisoformat(day))
    except ValueError:
        raise NotFound("day", day) from None
