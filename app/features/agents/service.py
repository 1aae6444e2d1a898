"""Joins what changes and checks the agents of one bridge."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from typing_extensions import override

from app.core.runtime import Runtime
from app.features.agents.applying import AppliedChanges
from app.features.agents.changes import AgentChanges
from app.features.agents.checkups import Checkups
from app.features.part import Part

CHANGES: Final = 500
"""Changes that can be undone: the last of each field, as long as the bridge runs."""


@dataclass(slots=True)
class Recent:
    """What was changed lately, by agent and field."""

    former: OrderedDict[tuple[str, str], Any] = field(default_factory=OrderedDict)
    """What a field was before its last change."""
    notes: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """What a service said about credentials, by agent and service."""

    def keep(self, agent: str, key: str, value: Any) -> None:
        """Keep what a field was."""
        self.former[agent, key] = value
        self.former.move_to_end((agent, key))
        while len(self.former) > CHANGES:
            self.former.popitem(last=False)

    def of(self, agent: str) -> dict[str, Any]:
        """Return what the fields of an agent were."""
        return {key: value for (owner, key), value in self.former.items() if owner == agent}


class Agents(Part):
    """The live registry of one bridge."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.recent = Recent()
        self.checkups = Checkups(runtime)
        self.changes = AgentChanges(runtime, AppliedChanges(runtime, self.checkups))

    @override
    def join(self) -> None:
        self.checkups.start()

    @override
    async def recover(self) -> None:
        """Settle which agents there are, before those that are gone would begin to work."""
        await self.changes.settle()

    @override
    async def reload(self) -> None:
        await self.changes.reload()

    @override
    async def close(self) -> None:
        await self.changes.close()
        await self.checkups.close()
