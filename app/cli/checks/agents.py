"""Checks of each agent: is it there, does it run, has it a key, does it ask, is it kept apart."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.acp.card import card_path, read_card
from app.agents.catalog import AgentProgram, checkout_words, known_agents
from app.agents.isolation import Shelter, shelter_all, try_shelter
from app.agents.registry import Registry
from app.children.census import new_marker
from app.children.hardening import make_undumpable
from app.children.stop import StopSteps, running
from app.cli.checks import Finding, ok, problem, warning
from app.cli.lines import one_line
from app.config import AgentEntry, Configuration
from app.config.names import is_secret
from app.errors import AgentNotStarted, ConfigurationError

VERSION_SECONDS: Final = 10.0
"""An agent in node takes a second or two to say its version; nobody waits longer for a check."""
VERSION_BYTES: Final = 4096
"""More than any version."""
STEPS: Final = StopSteps(close=0.5, terminate=0.5, kill=1.0)
"""A command that only prints something ends by itself."""


async def check_agents(
    configuration: Configuration, tried: Mapping[str, str] | None = None
) -> AsyncIterator[Finding]:
    """Check every agent in its own shoes; `tried` is what a running bridge found out by itself."""
    make_undumpable()
    with tempfile.TemporaryDirectory() as spare:
        if not configuration.data_dir.is_dir():
            # A check makes nothing that stays.
            configuration = replace(configuration, data_dir=Path(spare) / "data")
            configuration.data_dir.mkdir(mode=0o700)
        try:
            shelters = await asyncio.to_thread(shelter_all, configuration)
        except ConfigurationError as error:
            yield problem("isolation", error.problem, error.remedy)
            return
        registry = Registry(configuration, known_agents())
        for entry in registry:
            program, shelter = registry.program(entry.name), shelters[entry.name]
            yield command(configuration, entry, program)
            async for finding in versions(configuration, entry, program, shelter):
                yield finding
            for finding in keys(configuration, entry, program):
                yield finding
            yield mode(entry, program)
            yield checkout(entry, program)
            yield probed(configuration, entry)
            words = (tried or {}).get(entry.name)
            yield isolation(entry, words or (await try_shelter(configuration, shelter)).words)


def command(
    configuration: Configuration, entry: AgentEntry, program: AgentProgram | None
) -> Finding:
    """Check whether an agent's command is there."""
    name = entry.command[0]
    found = shutil.which(name, path=configuration.path)
    if found is not None:
        return ok(entry.name, f"command {found}")
    remedy = f"Install it: {program.install}" if program else "Check its command in AGENTS_JSON."
    return problem(entry.name, f"command {name!r} was not found on PATH", remedy)


async def versions(
    configuration: Configuration, entry: AgentEntry, program: AgentProgram | None, shelter: Shelter
) -> AsyncIterator[Finding]:
    """Run what tells the versions of an agent and of the node it needs."""
    if program is None:
        return
    if program.version and shutil.which(program.version[0], path=configuration.path):
        words = await _output(shelter, program.version)
        yield (
            ok(entry.name, f"version {words}")
            if words
            else warning(
                entry.name,
                f"{' '.join(program.version)!r} printed no version within {VERSION_SECONDS:g} s",
                f"Run it by hand, or install it again: {program.install}",
            )
        )
    if program.node is not None:
        yield _node(entry.name, program.node, await _output(shelter, ("node", "--version")))


def keys(
    configuration: Configuration, entry: AgentEntry, program: AgentProgram | None
) -> Iterator[Finding]:
    """Check whether an agent gets a key; only names are ever told."""
    given = sorted(name for name in configuration.model_keys(entry.name) if is_secret(name))
    if given:
        yield ok(entry.name, f"gets {', '.join(given)}")
    elif program is not None and entry.home != "user":
        wanted = [name for name in program.env if is_secret(name)]
        if wanted:
            yield warning(entry.name, f"{' and '.join(wanted)} is not set", program.login)


def mode(entry: AgentEntry, program: AgentProgram | None) -> Finding:
    """Check whether an agent is set to the mode in which it asks before it acts."""
    asks = program.ask_mode if program else None
    if program is not None and entry.mode in (None, asks):
        return ok(entry.name, "asks before it acts" + (f" (mode {asks})" if asks else ""))
    if asks is not None:
        return warning(
            entry.name,
            f"mode {entry.mode!r} is not the one in which it asks",
            f'What it does there unasked is never shown to anybody. "mode": {asks!r} asks.',
        )
    return warning(
        entry.name,
        "whether it asks before it acts is up to its own settings",
        "Name the mode in which it asks with mode in its entry in AGENTS_JSON.",
    )


def checkout(entry: AgentEntry, program: AgentProgram | None) -> Finding:
    """Say what settings in a checkout can do to an agent."""
    words = checkout_words(program)
    if program is not None:
        return ok(entry.name, words)
    return warning(entry.name, words, "Let it work only on repositories that you trust.")


def probed(configuration: Configuration, entry: AgentEntry) -> Finding:
    """Tell what the last probe of an agent saw."""
    card = read_card(card_path(configuration.data_dir, entry.name))
    command = f"agent-bridge agents probe {entry.name}"
    if card is None or not card.speaks_of(entry.command):
        return ok(entry.name, f"not probed yet; `{command}` tries what it can do")
    failing = [step for step in card.steps if step.verdict == "fails"]
    if not failing:
        return ok(entry.name, f"probed: {card.words}")
    why = "; ".join(f"{step.name}: {step.remark}" for step in failing)
    return warning(
        entry.name, f"probed: {why}", f"What fails is not used. After a repair: `{command}`."
    )


def isolation(entry: AgentEntry, words: str) -> Finding:
    """Judge how an agent is kept apart."""
    if words.startswith("isolated"):
        return ok(entry.name, words)
    reason, _, remedy = words.partition(". ")
    if not entry.isolated:
        remedy = (
            "It can read whatever you can read. To isolate it, name it in AGENTS_JSON without "
            '"sandbox": "none" and "home": "user".'
        )
    return warning(entry.name, reason.rstrip("."), remedy or "It can read whatever you can read.")


def _node(agent: str, oldest: int, words: str) -> Finding:
    found = re.match(r"v(\d+)", words)
    remedy = f"Install node {oldest} or newer and put it on PATH."
    if found is None:
        return problem(agent, f"needs node {oldest} or newer, and there is none", remedy)
    if int(found[1]) < oldest:
        return problem(agent, f"needs node {oldest} or newer, and finds {words}", remedy)
    return ok(agent, f"node {words}")


async def _output(shelter: Shelter, argv: Sequence[str]) -> str:
    """Run a command as the agent would; what it printed on one line, nothing if it failed."""
    env = shelter.environment(new_marker("doctor"))
    wrapped = shelter.sandbox.wrap(argv, shelter.confinement)
    try:
        async with (
            asyncio.timeout(VERSION_SECONDS),
            running(wrapped, name=argv[0], env=env, cwd=shelter.home, steps=STEPS) as child,
        ):
            child.close_input()
            printed = b""
            while len(printed) < VERSION_BYTES and (data := await child.stdout.read()):
                printed += data
            failed = await child.wait() != 0
    except (TimeoutError, AgentNotStarted):
        return ""
    return "" if failed else one_line(printed[:VERSION_BYTES].decode(errors="replace"), limit=80)
