"""What the scripted model answers.

It obeys the same plain lines as the demo agent, so that one suite of tests speaks to all agents:
`say TEXT`, `run COMMAND`, `tool NAME JSON`, `subagent NAME TEXT`, `slow N` and `recall`. Anything
else an agent asks its model (a title, a summary, a suggestion for the next prompt) gets a short
answer that fits anything. Asked by the bridge for a review, it requests changes to a line of
`work.txt` that is broken, and asked to answer one, it repairs that line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

SHELLS = ("Bash", "bash", "run_shell_command", "shell", "shell_command", "exec_command")
"""What agents call the tool that runs a command."""
COMMANDS = ("command", "cmd")
"""What they call the command itself."""
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "The test wants it."}
"""How a model asks for a command to run outside of the agent's own sandbox, where it has one."""
STOPPED = re.compile(r"not permitted|permission denied|read-only file system", re.IGNORECASE)
HELPERS = ("Agent", "Task", "spawn_agent", "task", "agent")
"""What they call the tool that starts a sub-agent."""
LINE = re.compile(
    r"^\s*(say|run|tool|subagent|slow|recall)\b[ \t]*(.*?)\s*$", re.IGNORECASE | re.MULTILINE
)
REVIEW, REVIEWED = "Review the work of ", " reviewed your work on "
"""How the bridge asks for a review, and for an answer to one."""
FILLER = "No hurry."
_NUMBERS = count(1)


Said = Literal["user", "tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as an agent offers it to its model."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a model, whatever its dialect."""

    told: tuple[str, ...]
    """What the user said, oldest first."""
    tools: tuple[Tool, ...] = ()
    results: tuple[str, ...] = ()
    """What the tools came to that were called for the last line of the user."""
    stream: bool = True

    @classmethod
    def of(
        cls, told: Iterable[tuple[Said, str]], tools: Iterable[Tool], *, stream: bool
    ) -> Question:
        """Put a conversation together; agents add remarks of their own in the user's name."""
        words: list[str] = []
        results: list[str] = []
        for who, text in told:
            if who == "tool":
                results.append(text)
            elif text.strip():
                words.append(text)
                if LINE.search(text) or REVIEW in text or REVIEWED in text:
                    results.clear()
        return cls(tuple(words), tuple(tools), tuple(results), stream)


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words."""

    id: str
    """Its own: an agent that hears an id twice takes the second for the first."""
    pieces: tuple[str, ...]
    endless: bool = False
    """Whether it never comes to an end: it is there to be cut off."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the agent's tools."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


Reply = Words | Call


def reply(question: Question) -> Reply:
    """Decide what the model answers."""
    command, argument = _last_line(question.told[-1] if question.told else "")
    shell = next((tool for tool in question.tools if tool.name in SHELLS), None)
    if shell is not None and _wants_more(question, shell):
        return Call(_new_id(), shell.name, {**_arguments(shell, _asked_for(question)), **ESCALATED})
    if question.results:
        return _words(f"It came to this: {question.results[-1][:500]}")
    if (asked := _as_colleague(question, shell)) is not None:
        return asked
    if command == "say":
        return _words(argument)
    if command == "slow":
        return Words(_new_id(), (f"{FILLER} ",), endless=True)
    if command == "recall":
        lines = [" ".join(found) for words in question.told[:-1] for found in LINE.findall(words)]
        return _words("\n- ".join(["You told me:", *lines]))
    if command == "run" and shell is not None:
        return Call(_new_id(), shell.name, _arguments(shell, argument))
    if command == "tool":
        return _tool_call(question, argument)
    if command == "subagent":
        return _subagent(question, argument)
    return _words("Fine.")


def _subagent(question: Question, argument: str) -> Reply:
    """Start a sub-agent with a name and a task."""
    name, task = argument.split(None, 1)
    named = {each.name.rpartition("/")[2]: each for each in question.tools}
    tool = next((named[each] for each in HELPERS if each in named), None)
    if tool is None:
        return _words(f"I cannot start {name}, I have {[each.name for each in question.tools]}.")
    given = {"prompt": task, "message": task, "description": name, "task_name": name}
    given |= {"subagent_type": "general-purpose", "agent_type": "default"}
    known = tool.schema.get("properties", {})
    return Call(_new_id(), tool.name, {key: given[key] for key in given if key in known})


def _as_colleague(question: Question, shell: Tool | None) -> Reply | None:
    """Review a diff, or repair what a review found."""
    told = question.told[-1] if question.told else ""
    if REVIEW in told:
        is_broken = re.search(r"^\+.*broken", told, re.MULTILINE) is not None
        found = [{"path": "work.txt", "line": 1, "body": "This is broken."}] if is_broken else []
        verdict = "request_changes" if is_broken else "approve"
        given = {"verdict": verdict, "body": "I read the diff.", "comments": found}
        return _tool_call(question, f"review_submit {json.dumps(given)}")
    if REVIEWED in told and shell is not None:
        return Call(_new_id(), shell.name, _arguments(shell, "echo repaired > work.txt"))
    return None


def _tool_call(question: Question, argument: str) -> Reply:
    """Call a tool of the bridge, which agents show to their models under longer names."""
    name, text = (*argument.split(None, 1), "{}")[:2]
    found = [tool for tool in question.tools if re.fullmatch(rf"(.*[^a-z])?{name}", tool.name)]
    through = [tool for tool in question.tools if tool.name == "tool_call"]
    if not found and through:
        given = {"name": f"mcp__bridge__{name}", "arguments": json.loads(text)}
        return Call(_new_id(), through[0].name, given)
    if not found:
        return _words(f"I have no tool {name}, only {[tool.name for tool in question.tools]}.")
    return Call(_new_id(), found[0].name, json.loads(text))


def _wants_more(question: Question, shell: Tool) -> bool:
    """Tell whether the agent's own sandbox stopped a command that may be run outside of it."""
    return (
        len(question.results) == 1
        and STOPPED.search(question.results[0]) is not None
        and ESCALATED.keys() <= shell.schema.get("properties", {}).keys()
    )


def _asked_for(question: Question) -> str:
    lines = [found for words in question.told for found in LINE.findall(words)]
    return str(lines[-1][1])


def _arguments(shell: Tool, command: str) -> dict[str, Any]:
    """Fill in what a shell tool wants: the command, and something harmless for all it requires."""
    properties: Mapping[str, Mapping[str, Any]] = shell.schema.get("properties", {})
    required: Sequence[str] = shell.schema.get("required", ())
    filled = {name: _value(properties[name]) for name in required if name in properties}
    name = next(name for name in COMMANDS if name in properties)
    is_list = properties[name].get("type", "string").lower() == "array"
    filled[name] = ["sh", "-c", command] if is_list else command
    return filled


def _value(schema: Mapping[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    kind = str(schema.get("type", "string")).lower()
    return {"boolean": False, "number": 1, "integer": 1, "array": [], "object": {}}.get(
        kind, "test"
    )


def _last_line(words: str) -> tuple[str, str]:
    found = LINE.findall(words)
    return (found[-1][0].lower(), found[-1][1]) if found else ("", "")


def _words(text: str) -> Words:
    """Break a text into pieces, as models stream them."""
    return Words(_new_id(), tuple(re.findall(r"\S+\s*|\s+", text)) or (" ",))


def _new_id() -> str:
    return f"scripted_{next(_NUMBERS)}"
