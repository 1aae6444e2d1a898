"""Checks what can be known of an agent without starting it: its command, key and isolation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final

from app.agents.catalog import AgentProgram
from app.agents.files import OWN, SHARED, AgentFiles
from app.agents.isolation import home_of
from app.config import AgentConfig, Configuration
from app.config.names import is_secret
from app.errors import FileRefused
from app.model import wording
from app.model.agents import AgentCheck, passed, unmet

FILES: Final = "files"
"""The name of the check of an agent's files."""
_CLOSED: Final = "closed, "
_CORRECT: Final = "Correct them on the agent's page, or in the folder agents of DATA_DIR."
_REOPEN: Final = "Run `agent-bridge doctor`, fix the cause and restart the bridge."


def check_entry(
    configuration: Configuration, entry: AgentConfig, program: AgentProgram | None
) -> Iterator[AgentCheck]:
    """Check an agent's command, and whether it has a key or a login in its home."""
    yield check_command(configuration, entry, program)
    if (key := check_key(configuration, entry, program)) is not None:
        yield key


def check_command(
    configuration: Configuration, entry: AgentConfig, program: AgentProgram | None
) -> AgentCheck:
    """Check whether an agent's command is installed."""
    name = entry.command[0]
    found = shutil.which(name, path=configuration.path)
    if found is not None:
        return passed("command", found)
    check = explain_command(configuration, entry)
    remedy = f"Install it: {program.install}" if program else check
    return unmet("command", f"{name!r} was not found on PATH.", remedy, "unavailable")


def explain_command(configuration: Configuration, entry: AgentConfig) -> str:
    """Say where to look if an agent's command is not there, and its program is not known."""
    where = f" in {configuration.agents_source}" if entry.source == "environment" else ""
    return f"Check its command{where}."


def check_key(
    configuration: Configuration, entry: AgentConfig, program: AgentProgram | None
) -> AgentCheck | None:
    """Check whether an agent has a key or a login; None if that cannot be known.

    Only names are ever shown. An agent in the user's home may be logged in by means that only it
    knows; so may one that gets other variables, such as the address of a gateway.
    """
    variables = configuration.model_keys(entry.id)
    given = sorted(name for name in variables if is_secret(name))
    if given:
        return passed("key", f"gets {', '.join(given)}")
    wanted = [name for name in program.env if is_secret(name)] if program else []
    if program is None or entry.home == "user" or not wanted:
        return None
    home = home_of(configuration, entry)
    if any((home / name).exists() for name in program.home.login):
        return passed("key", "has a login in its HOME")
    if variables or not program.home.login:
        return unmet("key", f"{' and '.join(wanted)} is not set.", program.login)
    remedy = wording.LOG_IN_OR_SET.format(agent=entry.name, key=wanted[0])
    return unmet("key", wording.NOT_LOGGED_IN, remedy, "login_needed")


def check_files(files: AgentFiles, agent: str) -> Iterator[AgentCheck]:
    """Check the files of an agent, and those for all agents; they are used all the same."""
    problems: dict[str, str] = {}
    for owner, names in ((agent, OWN), (None, SHARED)):
        for name in names:
            try:
                found = files.read(owner, name)
            except FileRefused as refused:
                problems[name] = f"It {refused.problem}. {refused.remedy}"
            else:
                if found is not None and found.problem:
                    problems[name] = found.problem
    if problems:
        words = " ".join(f"{name}: {problem}" for name, problem in problems.items())
        yield unmet(FILES, f"its files have a problem. {words}", _CORRECT)


def check_isolation(words: str) -> AgentCheck:
    """Read what the isolation probe said."""
    if words.startswith(_CLOSED):
        reason = f"It must be isolated: {words.removeprefix(_CLOSED)}"
        return AgentCheck("isolation", False, reason, _REOPEN, "unavailable")
    return AgentCheck("isolation", words.startswith("isolated"), words)
