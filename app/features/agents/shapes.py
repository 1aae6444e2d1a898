"""Defines the JSON shapes in which agents are changed."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from app.server.agent_shapes import AgentOut
from app.server.shapes import Closed


class AgentDetail(AgentOut):
    """An agent with its entry."""

    entry: dict[str, Any]
    """The keys of its entry as in AGENTS_JSON, but `env` is the list of its variables' names."""
    credentials: dict[str, list[str]]
    """Which fields are stored for it, by service; those of the settings are not listed."""


class NewAgent(BaseModel):
    """An agent to add: its name and the keys of an entry, as in AGENTS_JSON."""

    model_config = ConfigDict(extra="allow")

    name: str
    credentials: dict[str, dict[str, str]] = {}
    """What it needs on services, by service and field."""

    @property
    def entry(self) -> dict[str, Any]:
        """The keys of its entry."""
        return dict(self.model_extra or {})


class ChangedAgent(BaseModel):
    """Keys of an entry to change: tables are merged key by key, null removes a key."""

    model_config = ConfigDict(extra="allow")

    credentials: dict[str, dict[str, str | None] | None] = {}

    @property
    def entry(self) -> dict[str, Any]:
        """The keys that change."""
        return dict(self.model_extra or {})


class NewName(Closed):
    """Another name for an agent."""

    to: str
