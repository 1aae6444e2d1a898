"""Defines the JSON shapes of agents in the API: their entries and files."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from app.agents.agent import Agent
from app.agents.catalog import checkout_words
from app.agents.files import LOG_BYTES, AgentFile, Version
from app.config.agents import EntrySource
from app.model.agents import Availability, State
from app.server.shapes import Closed


class AvailabilityOut(BaseModel):
    """Whether an agent can work, and if not, why and what to do."""

    state: State
    reason: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, found: Availability) -> AvailabilityOut:
        """Show what is known."""
        return cls(state=found.state, reason=found.reason, remedy=found.remedy)


class CheckOut(BaseModel):
    """What one check found about an agent."""

    name: str
    ok: bool
    words: str = ""

    @classmethod
    def all_of(cls, found: Availability) -> list[CheckOut]:
        """Show all checks."""
        return [cls(name=each.name, ok=each.ok, words=each.words) for each in found.checks]


class AgentOut(BaseModel):
    """An agent."""

    id: str
    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    checkout: str = ""
    limits: str = ""
    emoji: str = ""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    services: list[str]
    availability: AvailabilityOut
    version: str = ""
    """As the agent reported it when it was last tried; empty before that."""
    checks: list[CheckOut] = []
    source: EntrySource = "environment"
    """Where its entry is. One of the environment is changed there; a program that was found has
    none until it is added under its name, and the demo agent has none."""
    isolation_change: str = ""
    """How its isolation changed, until a person has seen it."""

    @classmethod
    def of(
        cls,
        agent: Agent,
        found: Availability,
        *,
        default: bool,
        isolation: str,
        services: Sequence[str],
        isolation_change: str = "",
    ) -> AgentOut:
        """Show an agent, with what is known of it now."""
        return cls(
            id=agent.id,
            name=agent.name,
            display_name=agent.title,
            description=agent.description,
            default=default,
            command=agent.config.command[0],
            isolation=isolation,
            checkout=checkout_words(agent.program),
            limits=agent.shelter.limit_words if agent.shelter else "",
            emoji=agent.emoji,
            visible=agent.visible,
            services=list(services),
            source=agent.config.source,
            isolation_change=isolation_change,
            availability=AvailabilityOut.of(found),
            version=found.version,
            checks=CheckOut.all_of(found),
        )


class FileOut(BaseModel):
    """One file of an agent, or of all agents."""

    path: str
    size: int
    changed_at: float
    problem: str = ""
    """What is wrong with a file that was changed by hand."""

    @classmethod
    def of(cls, file: AgentFile) -> FileOut:
        """Show a file without its text."""
        return cls(path=file.path, size=file.size, changed_at=file.changed_at, problem=file.problem)


class VersionOut(BaseModel):
    """An earlier state of a file."""

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
        kept = [
            VersionOut(number=v.number, size=v.size, written_at=v.written_at, gone=v.gone)
            for v in versions
        ]
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
