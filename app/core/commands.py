"""Recognises commands: the whole message after the mention, never only its first word; pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.schedules import command as schedule_command

_PLAIN = {"new", "status", "queue", "repo", "help"}
_VERBOSITY = {"quiet", "normal", "full"}
_CHOICES = {
    "stop": {"", "all"},
    "queue": {"", "now", "drop"},
    "listen": {"mention", "latest", "all"},
}
_NAMED = {"mode", "model", "repo"}
_NAMES = {*_PLAIN, *_VERBOSITY, *_CHOICES, *_NAMED, "schedule"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its one argument."""

    name: str
    argument: str = ""
    always: bool = False
    """Whether it applies to more than the place: `repo OWNER/NAME always`."""


def parse(text: str) -> Command | None:
    """Read a message as a command, or None if it is words for the agent.

    A command with `!` and a wrong argument is not meant for an agent: it gets help.
    """
    line = text.strip()
    if schedule_command.read(line.removeprefix("!")) is not None:
        return Command("schedule", line.removeprefix("!"))
    words = line.removeprefix("!").split()
    if not words or "\n" in line:
        return None
    is_meant = line.startswith("!") and words[0].lower() in _NAMES
    return _command(words) or (Command("help") if is_meant else None)


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
