"""Values of reviews: what a reviewer looks at, what it finds, and what is made public of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from app.model.workspaces import Repository

Verdict = Literal["approve", "request_changes", "comment"]
VERDICTS: Final[tuple[Verdict, ...]] = ("approve", "request_changes", "comment")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a reviewer says about one line of a file, as it is after the change."""

    path: str
    line: int
    body: str

    def __str__(self) -> str:
        return f"`{self.path}:{self.line}`: {self.body}"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Finding:
        """Read a finding as it is stored or sent."""
        return cls(str(data["path"]), int(data["line"]), str(data["body"]))

    def data(self) -> dict[str, Any]:
        """Write it as it is stored or sent."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is reviewed."""

    repository: Repository
    branch: str
    base: str
    """The branch that it is proposed for; empty for the default branch."""
    commit: str
    author: int | None = None
    """The session whose work it is, if it is an agent's."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A review for the platform that hosts the repository."""

    repository: Repository
    agent: str
    branch: str
    commit: str
    verdict: Verdict
    body: str
    findings: tuple[Finding, ...]
    mark: str
    """Names it: one that was submitted before is found by it."""
