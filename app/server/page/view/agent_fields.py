"""Lists the fields of an agent's entry for the form, with their words and their choices; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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

RULES = "rules"
"""The choice of permissions that are no preset."""


@dataclass(frozen=True, slots=True)
class Field:
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
    fields: tuple[Field, ...]


GROUPS = (
    Group(
        "What people see",
        (
            Field("display_name", "Display name", hint="The name in threads and lists."),
            Field("emoji", "Emoji", hint="Its picture. Without one, the first letters."),
            Field("description", "Description", "area", "What it is good at."),
            Field(
                "prompt",
                "Prompt",
                "area",
                "What it is told about itself, unless it has an IDENTITY.md.",
            ),
            Field(
                "visible",
                "Offered",
                "flag",
                "People can choose it. Hidden, it still answers to its name.",
            ),
        ),
    ),
    Group(
        "Program",
        (
            Field(
                "driver",
                "Driver",
                "choice",
                "The known agent it is.",
                usual="Found from the command",
            ),
            Field(
                "command", "Command", "command", "The program that speaks ACP, with its arguments."
            ),
            Field(
                "model",
                "Model",
                hint="Set each time a session starts.",
                usual="The agent's own choice",
            ),
            Field(
                "mode", "Mode", hint="Set each time a session starts.", usual="The one that asks"
            ),
            Field(
                "options",
                "Options",
                "pairs",
                "Further options of the agent: NAME=value, one per line.",
            ),
            Field("auth", "Login method", hint="If it offers several."),
            Field(
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
            Field(
                "permissions",
                "Permissions",
                "permissions",
                "What it may do without asking people.",
                (
                    ("read-only", "Read only: reads, and changes nothing"),
                    ("careful", "Careful: reads, and asks before it changes anything"),
                    ("trusted", "Trusted: edits and runs commands without asking"),
                    (RULES, "Own rules"),
                ),
                usual="Careful, as usual",
            ),
            Field(
                "unasked",
                "Acts without asking",
                "choice",
                "When it does something that the rules leave to people.",
                (("stop", "Its turn ends"), ("tell", "People are told")),
                usual="Ends with services, told on the page alone",
            ),
            Field(
                "sandbox",
                "Sandbox",
                "choice",
                "How it is isolated from the rest of the machine.",
                (
                    ("auto", "If possible"),
                    ("bubblewrap", "Always (bubblewrap)"),
                    ("none", "Not isolated"),
                ),
                usual="If possible, as usual",
            ),
            Field(
                "memory",
                "Memory",
                "choice",
                "Whether it notes after a turn what is worth keeping for other conversations.",
                (
                    ("off", "It notes nothing"),
                    ("ask", "People decide on each note"),
                    ("auto", "It keeps its notes; people decide where strangers spoke"),
                ),
                usual="It notes nothing, as usual",
            ),
            Field("home", "Home", hint="own, user, or an absolute path.", usual="own"),
            Field(
                "network",
                "Network",
                "choice",
                "What it can connect to.",
                (
                    ("open", "The internet"),
                    ("restricted", "Its list of hosts"),
                    ("none", "Nothing"),
                ),
                usual="The internet, as usual",
            ),
            Field(
                "network_hosts",
                "Hosts",
                "words",
                "In addition to its model's, one per line: api.example.com, *.example.com.",
            ),
            Field(
                "ship",
                "Changes",
                "choice",
                "What happens to its commits at the end of a turn.",
                (("pr", "Pull request"), ("push", "Pushed to its branch"), ("none", "Stay here")),
                usual="Pull request, as usual",
            ),
            Field(
                "env_passthrough",
                "Variables of the bridge",
                "words",
                "Names of variables that it gets from the settings, one per line.",
            ),
            Field(
                "idle_minutes",
                "Idle minutes",
                "number",
                "After how long an idle session is parked.",
                usual="The bridge's default",
            ),
        ),
    ),
    Group(
        "Tools and other agents",
        (
            Field(
                "tool_exposure",
                "Tools of the bridge",
                "choice",
                "How it gets them.",
                (
                    ("tools", "Over MCP"),
                    ("skills", "As a command, with a SKILL.md for each"),
                    ("mixed", "Both"),
                ),
                usual="As its program is known to use them",
            ),
            Field(
                "delegation_voice",
                "Voice",
                "choice",
                "Who tells people what it did for another agent.",
                (
                    ("own", "Itself, where it is connected"),
                    ("caller", "The agent that asked, in one line"),
                ),
                usual="The agent that asked, as usual",
            ),
            Field(
                "agents_allow",
                "Agents it may ask",
                "allowed",
                "Names, one per line; * means any letters. Empty: all that can do no more than it. "
                "none: no agent.",
            ),
            Field("agents_deny", "Agents it may not ask", "words", "Counts more than the above."),
            Field(
                "tools_allow",
                "Tools it may use",
                "allowed",
                "Such as agents_* or memory_read, one per line. Empty: all. none: no tool.",
            ),
            Field("tools_deny", "Tools it may not use", "words", "Counts more than the above."),
            Field(
                "capabilities_allow",
                "Capabilities it may use",
                "allowed",
                "Such as *.read, one per line; a tool needs all that it has. Empty: all.",
            ),
            Field(
                "capabilities_deny",
                "Capabilities it may not use",
                "words",
                "Such as place.write: refuses every tool with one of them.",
            ),
        ),
    ),
)
FIELDS: Mapping[str, Field] = {field.key: field for group in GROUPS for field in group.fields}
"""The fields that are shown one by one; variables have a part of their own."""
