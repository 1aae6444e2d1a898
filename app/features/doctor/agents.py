"""Checks each agent: its command, version, key, mode, limits, probe and isolation."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.acp.card import card_path, read_card
from app.acp.late import greet
from app.acp.launch import launch_of
from app.agents.agent import Agent
from app.agents.catalog import AgentProgram, checkout_words
from app.agents.checks import (
    Admission,
    check_command,
    check_files,
    check_key,
    describe_change,
    note_one,
)
from app.agents.files import AgentFiles
from app.agents.isolation import NOT_OURS, Isolation, isolate_all
from app.agents.network import SHARED
from app.agents.registry import Registry
from app.children.limits import make_undumpable
from app.children.proc_table import new_marker
from app.children.stop import StopSteps, running
from app.config import AgentConfig, Configuration
from app.config.remote import AGENT_TOKEN
from app.errors import AgentError, AgentNotStarted, ConfigurationError
from app.metrics import Metrics
from app.model.agents import AgentCheck
from app.server.agent_shapes import AgentOut
from app.services.service import Finding, ok, problem, warning
from app.terminal.framing import one_line
from app.vault import Vault

VERSION_SECONDS: Final = 10.0
"""An agent in node takes a second or two to print its version; a check may not take longer."""
ANSWER_SECONDS: Final = 20.0
"""How long an agent on another machine may take to answer a check."""
VERSION_BYTES: Final = 4096
"""Longer than any version."""
_REMEDIES: Final = (
    (
        SHARED,
        "Let bubblewrap make network namespaces: `bwrap --ro-bind / / --unshare-net true` "
        "shows what is missing.",
    ),
    ("it runs as root", "Run the bridge as an ordinary user."),
    ("share one home", 'Leave "home" out of its entry, so that each session has its own home.'),
)
STEPS: Final = StopSteps(close=0.5, terminate=0.5, kill=1.0)
"""A command that only prints something ends by itself."""


async def check_agents(
    configuration: Configuration, known: Mapping[str, AgentOut] | None = None
) -> AsyncIterator[Finding]:
    """Check every agent in its own isolation; `known` holds what a running bridge found."""
    make_undumpable()
    with tempfile.TemporaryDirectory() as spare:
        if not configuration.data_dir.is_dir():
            # A check leaves nothing behind.
            configuration = configuration.moved(Path(spare) / "data")
            configuration.data_dir.mkdir(mode=0o700)
        try:
            isolations = await asyncio.to_thread(isolate_all, configuration)
        except ConfigurationError as error:
            yield problem("isolation", error.problem, error.remedy)
            return
        registry = Registry(configuration, isolations=isolations)
        admission = Admission(registry)
        for agent in registry.values():
            entry, program, isolation = agent.config, agent.program, isolations[agent.id]
            if entry.is_left_over:
                continue
            told = read(entry, check_command(configuration, entry, program))
            yield told
            async for finding in versions(configuration, entry, program, isolation):
                yield finding
            for finding in keys(configuration, entry, program):
                yield finding
            for check in check_files(AgentFiles(configuration.shared_dir, Vault()), entry.id):
                yield read(entry, check)
            yield mode(entry, program)
            yield checkout(entry, program)
            yield limits(entry, isolation)
            yield probed(configuration, entry)
            card = (known or {}).get(entry.name)
            if entry.url and card is None:
                yield await answers(configuration, agent, admission)
            # A bridge that runs says of a missing command what was said above.
            if card is not None and (found := available(entry, card)) != told:
                yield found
            words = card.isolation if card is not None else await admission.judge(entry.id)
            yield read_isolation(entry, words)


async def answers(configuration: Configuration, agent: Agent, admission: Admission) -> Finding:
    """Connect to an agent on another machine, where no running bridge has done so."""
    launch = launch_of(agent, configuration, admission)
    folder = configuration.data_dir / "workspaces" / f"doctor-{agent.id}"
    try:
        greeting = await greet(
            launch,
            folder,
            Metrics(),
            bridge=configuration.bridge_id,
            timeouts=dict.fromkeys(("initialize", "new"), ANSWER_SECONDS),
        )
    except AgentNotStarted as error:
        return problem(agent.name, error.cause, error.remedy)
    except AgentError as error:
        return problem(agent.name, str(error).rstrip("."), "Check that an ACP agent runs there.")
    return ok(agent.name, f"answers as {greeting.title} {greeting.version}".rstrip())


def check_drift(registry: Registry) -> Iterator[Finding]:
    """Report every agent that is isolated otherwise than before, until a person has seen it."""
    configuration = registry.configuration
    if not configuration.data_dir.is_dir():
        return
    try:
        isolations = isolate_all(configuration)
    except ConfigurationError:
        return  # reported with the agents
    for record in registry.records:
        if (entry := configuration.agents.get(record.id)) is None:
            continue
        noted = note_one(record, entry, isolations[entry.id])
        if words := describe_change(noted):
            yield warning(
                entry.name,
                words.rstrip("."),
                "If this was not intended, correct its entry. Then press Got it on its page.",
            )


def read(entry: AgentConfig, check: AgentCheck) -> Finding:
    """Report what a check found about an agent."""
    reason = check.words.rstrip(".")
    if check.ok:
        return ok(entry.name, f"{check.name} {reason}" if check.name == "command" else reason)
    judge = problem if check.state == "unavailable" else warning
    return judge(entry.name, reason, check.remedy)


def available(entry: AgentConfig, card: AgentOut) -> Finding:
    """Report whether a running bridge finds an agent able to work."""
    found = card.availability
    if found.state == "ready":
        last = [check.words for check in card.checks if check.name == "last turn"]
        return ok(entry.name, " · ".join(("ready", *last)).rstrip("."))
    judge = problem if found.state == "unavailable" else warning
    return judge(entry.name, found.reason.rstrip("."), found.remedy)


async def versions(
    configuration: Configuration,
    entry: AgentConfig,
    program: AgentProgram | None,
    isolation: Isolation,
) -> AsyncIterator[Finding]:
    """Check the versions of an agent and of the node it needs."""
    if program is None or entry.url:
        return
    if program.version and shutil.which(program.version[0], path=configuration.path):
        words = await _output(isolation, program.version)
        yield (
            ok(entry.name, f"version {words}")
            if words
            else warning(
                entry.name,
                f"{' '.join(program.version)!r} printed no version within {VERSION_SECONDS:g} s",
                f"Run it by hand, or reinstall it: {program.install}",
            )
        )
    if program.node is not None:
        yield _node(entry.name, program.node, await _output(isolation, ("node", "--version")))


def keys(
    configuration: Configuration, entry: AgentConfig, program: AgentProgram | None
) -> Iterator[Finding]:
    """Check whether an agent gets a key; only names are ever shown."""
    key = check_key(configuration, entry, program)
    if key is not None:
        yield read(entry, key)
    elif entry.url:
        yield warning(
            entry.name,
            f"is reached without a token: {entry.setting(AGENT_TOKEN)} is not set",
            "Set it to the token that its relay expects, unless its machine lets everybody in.",
        )
    elif program is None:
        yield warning(
            entry.name,
            "gets no model key, because its command is not a known agent",
            'Add "env_passthrough" to its entry in AGENTS_JSON, such as ["OPENAI_API_KEY"], or set '
            '"driver" if it is a known agent.',
        )


def mode(entry: AgentConfig, program: AgentProgram | None) -> Finding:
    """Check whether an agent is set to the mode in which it asks before it acts."""
    asks = program.ask_mode if program else None
    if program is not None and entry.mode in (None, asks):
        return ok(entry.name, "asks before it acts" + (f" (mode {asks})" if asks else ""))
    if asks is not None:
        return warning(
            entry.name,
            f"mode {entry.mode!r} is not the mode in which it asks",
            f'In that mode it may act without asking anyone. Set "mode" to {asks!r}.',
        )
    return warning(
        entry.name,
        "whether it asks before it acts depends on its own settings",
        'Set "mode" in its entry in AGENTS_JSON to the mode in which it asks.',
    )


def checkout(entry: AgentConfig, program: AgentProgram | None) -> Finding:
    """Report what settings in a checkout can do to an agent."""
    if entry.url:
        return ok(entry.name, "works in its own files; the bridge gives it no checkout")
    words = checkout_words(program)
    if program is not None:
        return ok(entry.name, words)
    return warning(entry.name, words, "Let it work only on repositories that you trust.")


def limits(entry: AgentConfig, isolation: Isolation) -> Finding:
    """Report what one session of an agent may use."""
    words, _, remedy = isolation.limit_words.partition(": ")
    if remedy:
        return warning(entry.name, f"limits: {words}", f"{remedy[0].upper()}{remedy[1:]}.")
    return ok(entry.name, f"limits: {words}")


def probed(configuration: Configuration, entry: AgentConfig) -> Finding:
    """Report what the last probe of an agent saw."""
    card = read_card(card_path(configuration.shared_dir, entry.id))
    command = f"agent-bridge agents probe {entry.name}"
    if card is None or not card.is_about(entry.argv):
        return ok(entry.name, f"not probed yet; `{command}` tries what it can do")
    failing = [step for step in card.steps if step.verdict == "fails"]
    if not failing:
        return ok(entry.name, f"probed: {card.words}")
    why = "; ".join(f"{step.name}: {step.remark}" for step in failing)
    return warning(
        entry.name, f"probed: {why}", f"What fails is not used. Once fixed, run `{command}`."
    )


def read_isolation(entry: AgentConfig, words: str) -> Finding:
    """Judge how an agent is isolated."""
    if words.startswith("isolated"):
        remedy = next((remedy for part, remedy in _REMEDIES if part in words), None)
        return warning(entry.name, words, remedy) if remedy else ok(entry.name, words)
    if words.startswith(NOT_OURS):
        return ok(entry.name, words.rstrip("."))
    if words.startswith("closed"):
        reason, _, remedy = words.partition(". ")
        return problem(
            entry.name, reason.rstrip("."), remedy or "Check its home and where secrets are kept."
        )
    reason, _, remedy = words.partition(". ")
    return warning(entry.name, reason, remedy)


def _node(agent: str, oldest: int, words: str) -> Finding:
    found = re.match(r"v(\d+)", words)
    remedy = f"Install node {oldest} or newer and put it on PATH."
    if found is None:
        return problem(agent, f"needs node {oldest} or newer, which was not found", remedy)
    if int(found[1]) < oldest:
        return problem(agent, f"needs node {oldest} or newer, found {words}", remedy)
    return ok(agent, f"node {words}")


async def _output(isolation: Isolation, argv: Sequence[str]) -> str:
    """Run a command as the agent would; returns its output on one line, empty if it failed."""
    env = isolation.environment(new_marker("doctor"))
    wrapped = isolation.sandbox.wrap(argv, isolation.confinement)
    try:
        async with (
            asyncio.timeout(VERSION_SECONDS),
            running(wrapped, name=argv[0], env=env, cwd=isolation.home, steps=STEPS) as child,
        ):
            child.close_input()
            printed = b""
            while len(printed) < VERSION_BYTES and (data := await child.stdout.read()):
                printed += data
            failed = await child.wait() != 0
    except (TimeoutError, AgentNotStarted):
        return ""
    return "" if failed else one_line(printed[:VERSION_BYTES].decode(errors="replace"), limit=80)
