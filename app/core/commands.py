"""Recognises commands: the whole message after the mention, never only its first word; pure.

Only `agent NAME` and commands of features may have words after them: they are for agents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from app.core.hooks import FeatureCommand, Hooks

_PLAIN = {"new", "status", "queue", "repo", "help"}
_VERBOSITY = {"quiet", "normal", "full"}
_CHOICES = {
    "stop": {"", "all"},
    "queue": {"", "now", "drop"},
    "listen": {"mention", "latest", "all"},
}
_NAMED = {"mode", "model", "repo"}
_NAMES = {*_PLAIN, *_VERBOSITY, *_CHOICES, *_NAMED}
_AGENT = re.compile(r"(!?)agent(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL)
_TIMING = re.compile(r"(?:!(queue|now)\s+|(queue|now):\s*)(\S.*)", re.IGNORECASE | re.DOTALL)
_AFTER_NAME = ",: \t\r\n"
_NO_AGENTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its one argument."""

    name: str
    argument: str = ""
    always: bool = False
    """Whether it applies to more than the place: `repo OWNER/NAME always`."""
    words: str = ""
    """What `agent` has after the name, for that agent."""
    own: FeatureCommand | None = None
    """What it says, if it is a command of a feature."""


def parse(
    text: str, agents: Mapping[str, str] = _NO_AGENTS, hooks: Hooks | None = None
) -> Command | None:
    """Read a message as a command, or None if it is words for the agent.

    A command with `!` and a wrong argument is not meant for an agent: it gets help. `agents` are
    the ids of agents by what people call them, in lower case.
    """
    line, hooks = text.strip(), hooks or Hooks()
    if (named := _AGENT.fullmatch(line)) is not None:
        return _hand_over(named[2] or "", agents, is_meant=bool(named[1]))
    if (own := hooks.read_command(line.removeprefix("!"), agents)) is not None:
        return Command(own.name, own=own)
    words = line.removeprefix("!").split()
    if not words or "\n" in line:
        return None
    is_meant = line.startswith("!") and words[0].lower() in _NAMES | hooks.command_names
    return _command(words) or (Command("help") if is_meant else None)


def read_timing(text: str) -> tuple[Literal["queue", "now"], str] | None:
    """Read when words for a working agent are meant to reach it; None if they do not say.

    They begin with `!queue` or `!now`, or with `queue:` or `now:`: plain sentences do not.
    """
    found = _TIMING.fullmatch(text.strip())
    if found is None or found[3].lower() in _CHOICES["queue"]:
        return None
    when: Literal["queue", "now"] = "now" if (found[1] or found[2]).lower() == "now" else "queue"
    return when, found[3]


def _command(words: list[str]) -> Command | None:
    if len(words) == 3 and (words[0].lower(), words[2].lower()) == ("repo", "always"):
        return Command("repo", words[1], always=True)
    if len(words) > 2:
        return None
    name, argument = words[0].lower(), words[1] if len(words) == 2 else ""
    if name in _VERBOSITY and not argument:
        return Command("verbosity", name)
    if name in _CHOICES and argument.lower() in _CHOICES[name]:
        return Command(name, argument.lower())
    if name in _NAMED and argument:
        return Command(name, argument)
    return Command(name) if name in _PLAIN and not argument else None


def _hand_over(rest: str, agents: Mapping[str, str], *, is_meant: bool) -> Command | None:
    """Read who takes over, and the words for it; the longest name counts.

    More than one word after a name that no agent has are words: "agent smith is wrong".
    """
    for called in sorted(agents, key=len, reverse=True):
        words = rest[len(called) :]
        if rest[: len(called)].casefold() == called and not words[:1].strip(_AFTER_NAME):
            return Command("agent", agents[called], words=words.lstrip(_AFTER_NAME).rstrip())
    is_name = len(rest.split()) <= 1
    return Command("agent", rest) if is_name else Command("help") if is_meant else None
