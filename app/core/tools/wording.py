"""Words what agents read about the bridge's tools; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMAND: Final = "agent-bridge-tool"
"""The command by which an agent calls tools in a shell."""
NO_TOOL: Final = "There is no tool {name!r} for you. List your tools to see which there are."
TOO_LARGE: Final = "The arguments of {name} are too long: at most {limit} bytes."
NO_TURN: Final = "Tools work only during your turn, and it is over."
NOT_ASKED: Final = "You asked for nothing with the id {id!r}. agents_status lists what you did."
STILL_WORKS: Final = (
    "It is not done yet and goes on. Use agents_result with this id to get the answer; if you end "
    "your turn before, you are told the answer at the beginning of your next one."
)
BAD_ARGUMENTS: Final = "The arguments of {name} are wrong, at {where}: {reason}"
FAILED: Final = "It failed inside the bridge. Try again, or tell the person who asked you."
INSTRUCTIONS: Final = (
    "Tools of the bridge through which people talk to you: other agents, your memory, the place "
    "where you were asked, and pull requests. They work only during your turn."
)
SKILL: Final = """---
name: {name}
description: {summary}
---

# {tool}

{description}

Run the command with the arguments as one JSON object, quoted for the shell:

    {command} {tool} '{{...}}'

For a long text, write the JSON to standard input:

    {command} {tool} - <<'END'
    {{...}}
    END

It prints the result as JSON. If it fails, it prints why and ends with status 1.

The JSON schema of the arguments:

```json
{schema}
```
"""
SKILLS: Final = """Tools of the bridge through which people talk to you; they work during your turn.
Run `{command} NAME JSON` in a shell. `{command} NAME --help` describes a tool, and so does
its SKILL.md in the folder `$AGENT_BRIDGE_SKILLS`:
{tools}"""


def first_sentence(description: str) -> str:
    """Return the first sentence of a tool's description."""
    return " ".join(description.split()).partition(". ")[0].rstrip(".")


def list_skills(tools: Mapping[str, str]) -> str:
    """Tell an agent of its tools, by name and description, as a command; empty without tools."""
    if not tools:
        return ""
    lines = [f"- {name}: {first_sentence(words)}." for name, words in tools.items()]
    return SKILLS.format(command=COMMAND, tools="\n".join(lines))
