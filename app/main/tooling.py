"""Joins the bridge's tools with the doors through which agents call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.agents.registry import PerAgent
from app.core.tools.tool import Tool
from app.core.tools.toolbox import Toolbox
from app.core.tools.wording import list_skills
from app.main.resources import Resources
from app.main.together import exposure_of, scope_of, tool_seconds_of
from app.mcp_server.doors import ToolDoors


class Tooling:
    """The tools of one bridge, and the ways to them."""

    def __init__(
        self,
        base: Resources,
        tools: Iterable[Tool],
        *,
        running: Callable[[int], int | None],
    ) -> None:
        """Join; `running` returns the turn that a session runs."""
        self._base = base
        self.toolbox = Toolbox(
            tools,
            PerAgent(base.registry, scope_of),
            base.stores.sessions,
            base.stores.turns,
            base.metrics,
            running=running,
            waits=PerAgent(base.registry, tool_seconds_of),
        )
        self.doors = ToolDoors(base.configuration.data_dir / "tools", self.toolbox, base.vault)

    def list_skills(self, agent: str) -> str:
        """Tell an agent of the tools that it gets as a command; empty if it gets none so."""
        configuration = self._base.configuration
        if agent not in configuration.agents or exposure_of(configuration, agent) == "tools":
            return ""
        return list_skills({each.name: each.description for each in self.toolbox.tools(agent)})
