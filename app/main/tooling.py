"""Joins the bridge's tools with the doors through which agents call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from app.agents.agent import Agent
from app.core.tools.toolbox import Toolbox
from app.core.tools.wording import list_colleagues, list_skills
from app.main.resources import Resources
from app.mcp_server.doors import ToolDoors
from app.model.agents import Tool, ToolExposure


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
            base.registry.agents,
            base.stores.sessions,
            base.stores.turns,
            base.metrics,
            running=running,
        )
        self.doors = ToolDoors(base.configuration.data_dir / "tools", self.toolbox, base.vault)

    def list_skills(self, agent: str) -> str:
        """Tell an agent of the tools that it gets as a command; empty if it gets none so."""
        if self._exposure(agent) == "tools":
            return ""
        return list_skills({each.name: each.description for each in self.toolbox.tools(agent)})

    def list_colleagues(self, agent: str, colleagues: Sequence[Agent]) -> str:
        """Tell an agent whom it can ask, and with which tool; empty if it can ask no agent."""
        tools = [each.name for each in self.toolbox.tools(agent)]
        return list_colleagues(colleagues, tools, as_command=self._exposure(agent) == "skills")

    def _exposure(self, agent: str) -> ToolExposure:
        found = self._base.registry.agents.get(agent)
        return found.tool_exposure if found else "tools"
