"""Lists the fields of an agent's entry for the form, with the words of their choices; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.config import AgentConfig

Kind = Literal[
    "text",
    "area",
    "choice",
    "flag",
    "words",
    "allowed",
    "command",
    "number",
    "pairs",
    "permissions",
]
Offered = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AgentField:
    """One key of an entry."""

    key: str
    label: str
    kind: Kind = "text"
    hint: str = ""
    choices: Offered = ()
    """What it can be, each with its words."""
    usual: str = ""
    """What holds if it is empty."""
    value: str = ""
    rules: str = ""
    """The rules of permissions that are no preset, as JSON."""
    problem: str = ""
    former: str | None = None
    """What it was before its last change, if that can be undone."""

    @property
    def wide(self) -> bool:
        """Whether it takes several lines."""
        return self.kind in {"area", "words", "allowed", "pairs", "permissions"}


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together."""

    title: str
    fields: tuple[AgentField, ...]


RULES = "rules"
"""The choice of permissions that are no preset."""


def _field(
    key: str,
    kind: Kind = "text",
    *,
    hint: str = "",
    choices: Offered = (),
    usual: str = "",
) -> AgentField:
    """Describe a key in the words of `AgentConfig`, or with a hint of how to write it here."""
    about = AgentConfig.model_fields[key]
    return AgentField(
        key, about.title or key, kind, hint or about.description or "", choices, usual
    )


GROUPS = (
    Group(
        "What people see",
        (
            _field("display_name"),
            _field("emoji"),
            _field("description", "area"),
            _field("prompt", "area"),
            _field("visible", "flag"),
        ),
    ),
    Group(
        "Program",
        (
            _field("driver", "choice", usual="Found from the command"),
            _field("command", "command"),
            _field("url"),
            _field("remote_folder", usual="Its relay's own"),
            _field(
                "tls",
                "choice",
                choices=(("required", "Required"), ("off", "Off, on a network of yours alone")),
                usual="Required, as usual",
            ),
            _field("model", usual="The agent's own choice"),
            _field("mode", usual="The one that asks"),
            _field(
                "options", "pairs", hint="Further options of the agent: NAME=value, one per line."
            ),
            _field("auth"),
            AgentField(
                "extends",
                "Extends",
                "choice",
                "Takes every key that is empty here from that agent.",
                usual="None",
            ),
        ),
    ),
    Group(
        "Rights",
        (
            _field(
                "permissions",
                "permissions",
                choices=(
                    ("read-only", "Read only: reads, and changes nothing"),
                    ("careful", "Careful: reads, and asks before it changes anything"),
                    ("trusted", "Trusted: edits and runs commands without asking"),
                    (RULES, "Own rules"),
                ),
                usual="Careful, as usual",
            ),
            _field(
                "approvers",
                "words",
                hint="Reminded of what it asks, one per line: slack:U0123, github:octocat.",
            ),
            _field(
                "unasked",
                "choice",
                choices=(("stop", "Its turn ends"), ("tell", "People are told")),
                usual="Ends with services, told on the page alone",
            ),
            _field(
                "sandbox",
                "choice",
                choices=(
                    ("auto", "If possible"),
                    ("bubblewrap", "Always (bubblewrap)"),
                    ("none", "Not isolated"),
                ),
                usual="If possible, as usual",
            ),
            _field(
                "memory",
                "choice",
                choices=(
                    ("off", "It notes nothing"),
                    ("ask", "People decide on each note"),
                    ("auto", "It keeps its notes; people decide where strangers spoke"),
                ),
                usual="It notes nothing, as usual",
            ),
            _field("home", usual="own"),
            _field(
                "network",
                "choice",
                choices=(
                    ("open", "The internet"),
                    ("restricted", "Its list of hosts"),
                    ("none", "Nothing"),
                ),
                usual="The internet, as usual",
            ),
            _field(
                "network_hosts",
                "words",
                hint="In addition to its model's, one per line: api.example.com, *.example.com.",
            ),
            _field(
                "ship",
                "choice",
                choices=(
                    ("pr", "Pull request"),
                    ("push", "Pushed to its branch"),
                    ("none", "Stay here"),
                ),
                usual="Pull request, as usual",
            ),
            _field(
                "env_passthrough",
                "words",
                hint="Names of variables that it gets from the settings, one per line.",
            ),
            _field("idle_minutes", "number", usual="The bridge's default"),
        ),
    ),
    Group(
        "Tools and other agents",
        (
            _field(
                "tool_exposure",
                "choice",
                choices=(
                    ("tools", "Over MCP"),
                    ("skills", "As a command, with a SKILL.md for each"),
                    ("mixed", "Both"),
                ),
                usual="As its program is known to use them",
            ),
            _field(
                "delegation_voice",
                "choice",
                choices=(
                    ("own", "Itself, where it is connected"),
                    ("caller", "The agent that asked, in one line"),
                ),
                usual="The agent that asked, as usual",
            ),
            _field(
                "agents_allow",
                "allowed",
                hint="Names, one per line; * means any letters. Empty: all that can do no more "
                "than it. none: no agent.",
            ),
            _field("agents_deny", "words"),
            _field(
                "tools_allow",
                "allowed",
                hint="Such as agents_* or memory_read, one per line. Empty: all. none: no tool.",
            ),
            _field("tools_deny", "words"),
            _field(
                "capabilities_allow",
                "allowed",
                hint="Such as *.read, one per line; a tool needs all that it has. Empty: all.",
            ),
            _field(
                "capabilities_deny",
                "words",
                hint="Such as place.write: refuses every tool with one of them.",
            ),
        ),
    ),
)
FIELDS: Mapping[str, AgentField] = {field.key: field for group in GROUPS for field in group.fields}
"""The fields that are shown one by one; variables have a part of their own."""
