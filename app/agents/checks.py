"""Checks an agent before it starts: its command, key, files, and from inside its isolation.

An agent that must be isolated and is not stays closed until its entry changes or the bridge
restarts. A probe that could not run closes it too, but is retried with the next turn. A change of
its isolation since it was last seen is said until a person has seen it: no agent loses its
isolation silently.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.agents.catalog import AgentProgram
from app.agents.files import OWN, SHARED, AgentFiles
from app.agents.isolation import Isolation, home_of, must_be_isolated, try_isolation
from app.agents.registry import Registry
from app.children.probe import ProbeResult
from app.children.sandbox import Plain
from app.config import AgentConfig, AgentRecord, Configuration
from app.config.names import is_secret
from app.errors import AgentNotStarted, FileRefused
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
    """Check whether an agent's command is installed; of another machine, only its name is known."""
    if entry.url:
        return passed("address", f"runs at {entry.host}")
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
    if program is None or entry.home == "user" or entry.url or not wanted:
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


logger = logging.getLogger(__name__)

_WORDS: Final[Sequence[Mapping[str, str]]] = (
    {
        "none": "not isolated",
        "bubblewrap": "isolated (bubblewrap)",
        "remote": "not ours, on another machine",
    },
    {"own": "its own home", "user": "your home", "path": "a home that its sessions share"},
    {
        "host": "this machine's network",
        "open": "its own network",
        "restricted": "a list of hosts",
        "none": "no network",
    },
)
"""What the three codes of an isolation mean: sandbox, home, network."""


class Admission:
    """The verdicts on all agents."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._verdicts: dict[str, ProbeResult] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def judge(self, agent: str) -> str:
        """Probe an agent, unless the verdict is final, and describe its isolation."""
        async with self._locks[agent]:
            verdict = self._verdicts.get(agent)
            if verdict is None or not verdict.conclusive:
                isolation = self._registry.isolations[agent]
                verdict = await try_isolation(self._registry.configuration, isolation)
                self._verdicts[agent] = verdict
        return self.describe(agent)

    async def admit(self, agent: str) -> None:
        """Check that an agent may start.

        Raises:
            AgentNotStarted: it must be isolated and is not.
        """
        if not must_be_isolated(self._registry.configuration, self._registry[agent].config):
            return
        words = await self.judge(agent)
        if self._is_closed(agent):
            raise AgentNotStarted(
                agent,
                f"it must be isolated: {words}",
                "Run `agent-bridge doctor`, fix the cause and restart the bridge.",
            )

    def describe(self, agent: str) -> str:
        """Say how an agent is isolated, as far as is known without another probe."""
        if agent not in self._verdicts:
            return self._registry.isolations[agent].words
        words = self._verdicts[agent].words
        return f"closed, {words}" if self._is_closed(agent) else words

    def forget(self) -> None:
        """Judge every agent again: when agents change, what each must not see changes too."""
        self._verdicts.clear()

    def closed(self) -> dict[str, str]:
        """Return the closed agents that the bridge is there for, each with the reason."""
        return {
            agent: verdict.words
            for agent, verdict in self._verdicts.items()
            if agent in self._registry
            and not self._registry[agent].config.is_left_over
            and self._is_closed(agent)
        }

    def _is_closed(self, agent: str) -> bool:
        return (
            agent in self._registry  # else it was removed meanwhile
            and must_be_isolated(self._registry.configuration, self._registry[agent].config)
            and not self._verdicts[agent].isolated
        )


def note_isolation(
    configuration: Configuration,
    records: Sequence[AgentRecord],
    isolations: Mapping[str, Isolation],
) -> tuple[AgentRecord, ...]:
    """Return the records with how each agent is isolated now; log what changed."""
    agents = configuration.agents
    noted = tuple(
        note_one(record, agents[record.id], isolations[record.id])
        if record.id in agents
        else record
        for record in records
    )
    for before, record in zip(records, noted, strict=True):
        if before.isolation != record.isolation and record.isolation_was:
            logger.warning("%s: %s", record.name, describe_change(record))
    return noted


def note_one(record: AgentRecord, entry: AgentConfig, isolation: Isolation) -> AgentRecord:
    """Return an agent's record with how it is isolated now, and before if that changed."""
    now = _measure(entry, isolation)
    was = record.isolation_was if record.isolation == now else record.isolation
    return replace(record, source=entry.source, isolation=now, isolation_was=was)


def describe_change(record: AgentRecord) -> str:
    """Say how an agent was isolated and how it is now; empty if no change is unseen."""
    if not record.isolation_was:
        return ""
    before, now = _spell(record.isolation_was), _spell(record.isolation)
    return f"Its isolation changed. Before: {before}. Now: {now}."


def _measure(entry: AgentConfig, isolation: Isolation) -> str:
    if entry.url:
        return "remote"
    sandbox = "none" if isinstance(isolation.sandbox, Plain) else "bubblewrap"
    home = "path" if isinstance(entry.home, Path) else entry.home
    network = "host" if isolation.network is None else isolation.network.rules.mode
    return f"{sandbox} {home} {network}"


def _spell(codes: str) -> str:
    known = zip(_WORDS, codes.split(), strict=False)
    return ", ".join(words.get(code, code) for words, code in known)
