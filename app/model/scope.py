"""Decides which tools and which agents an agent may use, by the operator's lists; pure.

Denying counts more than allowing. No list of what is allowed means all, an empty one none. An agent
that can do more than the one that asks it must be named: a list of wildcards names no agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

Globs = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The lists of one agent."""

    tools_allow: Globs | None = None
    tools_deny: Globs = ()
    capabilities_allow: Globs | None = None
    capabilities_deny: Globs = ()
    agents_allow: Globs | None = None
    agents_deny: Globs = ()

    def allows_tool(self, name: str, capabilities: Iterable[str]) -> bool:
        """Tell whether it may use a tool: its name passes, and so does each capability."""
        if not _passes(name, self.tools_allow, self.tools_deny):
            return False
        return all(
            _passes(each, self.capabilities_allow, self.capabilities_deny) for each in capabilities
        )

    def allows_agent(self, name: str) -> bool:
        """Tell whether it sees another agent and may ask it."""
        return _passes(name, self.agents_allow, self.agents_deny)

    def names_agent(self, name: str) -> bool:
        """Tell whether the operator chose another agent for it, by more than wildcards."""
        chosen = tuple(glob for glob in self.agents_allow or () if glob.strip("*?"))
        return _passes(name, chosen, self.agents_deny)


def _passes(name: str, allow: Globs | None, deny: Globs) -> bool:
    if any(fnmatchcase(name, glob) for glob in deny):
        return False
    return allow is None or any(fnmatchcase(name, glob) for glob in allow)
