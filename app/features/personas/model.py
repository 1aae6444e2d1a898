"""Defines the JSON shapes of agents' files, for the API and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from app.agents.files import LOG_BYTES, AgentFile, Version
from app.server.shapes import Closed


class FileOut(BaseModel):
    """One file of an agent, or of all agents."""

    model_config = ConfigDict(from_attributes=True)

    path: str
    size: int
    changed_at: float
    problem: str = ""
    """What is wrong with a file that was changed by hand."""


class VersionOut(BaseModel):
    """An earlier state of a file."""

    model_config = ConfigDict(from_attributes=True)

    number: int
    size: int
    written_at: float
    gone: bool
    """Whether there was no such file."""


class FileDetail(BaseModel):
    """A file with its text, and what it was before."""

    path: str
    text: str = ""
    digest: str = ""
    """Changes with the text; empty if there is no such file any more."""
    problem: str = ""
    versions: list[VersionOut] = []

    @classmethod
    def of(cls, path: str, file: AgentFile | None, versions: Sequence[Version]) -> FileDetail:
        """Show a file; None if there is none any more."""
        kept = [VersionOut.model_validate(each) for each in versions]
        if file is None:
            return cls(path=path, versions=kept)
        return cls(
            path=path, text=file.text, digest=file.digest, problem=file.problem, versions=kept
        )


class NewText(BaseModel):
    """The text of a file."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=LOG_BYTES)
    expected: str = ""
    """The digest of the text to replace; without one, any text is replaced."""


class WantedVersion(Closed):
    """The version to bring back, by default the last."""

    version: int | None = Field(default=None, ge=1)
