"""The table of scopes: what an agent's entry says, and which tools and agents it then has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

READING = {"echo", "agents_list"}
ALL = {*READING, "echo_loud", "refuse", "break", "wait", "agents_message"}
OTHERS = {"friend", "foe"}
"""The agents that can be seen next to those of the table; a third one is not visible."""


@dataclass(frozen=True)
class Case:
    """One entry, and what follows from it."""

    entry: dict[str, Any]
    tools: set[str]
    agents: set[str] = field(default_factory=lambda: OTHERS)


CASES = {
    "missing": Case({}, ALL),
    "empty": Case({"tools_allow": []}, set()),
    "allow": Case({"tools_allow": ["echo", "agents_list"]}, READING),
    "glob": Case({"tools_allow": ["echo*", "agents_l?st"]}, {*READING, "echo_loud"}),
    "deny": Case({"tools_deny": ["*ait", "echo"]}, ALL - {"wait", "echo"}),
    "both": Case(
        {"tools_allow": ["echo*", "agents_list"], "tools_deny": ["echo"]},
        {"echo_loud", "agents_list"},
    ),
    "may": Case({"capabilities_allow": ["*.read"]}, READING),
    "may-some": Case(
        {"capabilities_allow": ["*.read", "test.loud"]},
        {*READING, "echo_loud"},
    ),
    "may-not": Case(
        {"capabilities_deny": ["test.l*", "*.ask"]}, ALL - {"echo_loud", "agents_message"}
    ),
    "may-none": Case({"capabilities_allow": []}, set()),
    "sees": Case({"agents_allow": ["f*"], "agents_deny": ["foe"]}, ALL, {"friend"}),
    "blind": Case({"agents_allow": []}, ALL, set()),
}
