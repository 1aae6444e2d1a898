"""Visits one agent in its own HOME and isolation: `agents probe` and `agents login`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from app import logs
from app.acp.card import Card, card_path, write_card
from app.acp.elicitation import DONE
from app.acp.launch import launches, make_workspace, prepare
from app.acp.probe import Probe
from app.acp.visits import Method, Visits, greet, log_in, methods
from app.agents.catalog import AgentProgram
from app.agents.isolation import isolate_all
from app.agents.registry import Registry
from app.children.foreground import run_in_terminal
from app.children.limits import make_undumpable
from app.children.proc_table import new_marker
from app.clock import SystemClock
from app.config import AgentConfig, Configuration, forget_process_secrets
from app.errors import BridgeError
from app.metrics import Metrics
from app.model.updates import AskRequest, BridgeUpdate, TextUpdate
from app.server.agent_shapes import AgentOut
from app.terminal.api import agent_path, find_bridge
from app.terminal.framing import one_line, printable, show_table
from app.terminal.screen import Margin, margin
from app.vault import Vault


@dataclass(frozen=True, slots=True)
class AgentVisit:
    """Everything that is needed to visit one agent and to describe it."""

    entry: AgentConfig
    program: AgentProgram | None
    visits: Visits
    vault: Vault


def tell_bridge(configuration: Configuration, name: str) -> None:
    """Have a running bridge check an agent again, since it may work now, or no longer."""
    # The bridge may be older than the entry, or busy: its next turn finds out all the same.
    with suppress(BridgeError):
        if (bridge := find_bridge(configuration)) is not None:
            bridge.post(AgentOut, f"{agent_path(name)}/probe")


def visitor(
    configuration: Configuration, name: str, *, on_host_network: bool = False
) -> AgentVisit:
    """Prepare visits to an agent, in its own network unless told otherwise.

    Raises:
        NotFound: there is no such agent.
        ConfigurationError: it cannot be isolated as it must be.
    """
    agent = Registry(configuration).find(name)
    entry, program = agent.config, agent.program
    vault = Vault(configuration.secret_values())
    # Errors are shown to the person; log lines would only get between them.
    logs.configure("error", configuration.settings.log_format, vault)
    make_undumpable()
    forget_process_secrets(configuration)
    isolation = isolate_all(configuration)[entry.id]
    if on_host_network:
        isolation = isolation.on_host_network()
    launch = launches(configuration, {entry.id: isolation})[entry.id]
    workspace = configuration.data_dir / "workspaces" / f"visit-{entry.id}"
    visits = Visits(launch, workspace, Metrics(), configuration.bridge_id)
    return AgentVisit(entry, program, visits, vault)


def probe(configuration: Configuration, name: str) -> bool:
    """Probe an agent and show its card; returns whether nothing failed.

    Raises:
        BridgeError: it could not even be tried.
        OSError: the card cannot be kept.
    """
    aside = margin(sys.stderr, quiet=False)
    visiting = visitor(configuration, name)
    path = card_path(configuration.shared_dir, visiting.entry.id)
    try:
        card = asyncio.run(_run_probe(visiting, aside))
    finally:
        aside.still()
    write_card(path, card)
    tell_bridge(configuration, name)
    show_table(
        ("step", "verdict", "seconds", "remark"),
        [(step.name, step.verdict, f"{step.seconds:.2f}", step.remark) for step in card.steps],
    )
    for note in visiting.program.quirks.notes if visiting.program else ():
        aside.line(f"Good to know: {note}", "dim")
    aside.line(f"{name}: {card.words}. Saved in {path}.", "dim")
    return not card.of("fails")


async def _run_probe(visiting: AgentVisit, aside: Margin) -> Card:
    def told(step: str) -> None:
        aside.status(f"{visiting.entry.name}: {step}")

    card = await Probe(visiting.visits, SystemClock(), told).run()
    redact = visiting.vault.redact
    return replace(
        card, steps=tuple(replace(step, remark=redact(step.remark)) for step in card.steps)
    )


class LoginFailed(BridgeError):
    """The agent could not be logged in; says why and what to do."""


class Relay:
    """Shows a person what an agent says while it logs in, and returns their answers."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Show what the agent says."""
        if isinstance(update, TextUpdate):
            _say(update.text)

    async def on_ask(self, request: AskRequest) -> str | None:
        """Show an address or a question; an address needs no answer: the agent waits."""
        _say(request.title)
        if DONE in request.options:
            return DONE.id
        if not sys.stdin.isatty():
            return None
        names = " / ".join(option.name for option in request.options)
        typed = (await asyncio.to_thread(input, f"({names}): ")).strip()
        named = (each.id for each in request.options if each.name.casefold() == typed.casefold())
        return next(named, typed or None)


def login(configuration: Configuration, name: str, wanted: str | None) -> None:
    """Log an agent in.

    Raises:
        LoginFailed: there is no way, or it did not work.
        BridgeError: the agent could not be asked.
    """
    # A browser on this machine may call back on a loopback port that the login listens on.
    visiting = visitor(configuration, name, on_host_network=True)
    if host := visiting.entry.host:
        raise LoginFailed(f"{name} runs at {host}. Log it in there, as the user who runs it.")
    relay = Relay()
    offered = asyncio.run(methods(visiting.visits, relay)) or known_login(visiting)
    method = choose(visiting, offered, wanted or visiting.entry.auth)
    _say(f"{name}: {': '.join(filter(None, (method.name, method.description.strip())))}")
    if method.command is None:
        asyncio.run(log_in(visiting.visits, relay, method, _say))
    else:
        _in_terminal(visiting, method, method.command)
    if not asyncio.run(greet(visiting.visits, authenticate=True)).logged_in:
        raise LoginFailed(f"{name} still asks for a login. {_hint(visiting)}")
    _say(f"{name} is logged in.")
    tell_bridge(configuration, name)


def known_login(visiting: AgentVisit) -> list[Method]:
    """Return the catalog's login for an agent that offers none over ACP."""
    program, command = visiting.program, visiting.entry.command
    if program is None or not program.login_command:
        return []
    if Path(command[0]).name in program.match:
        start = command[:1]
    else:  # a runner such as npx starts it: only what makes it speak ACP is left out
        words = program.command[1:]
        ends_so = bool(words) and command[-len(words) :] == words
        start = command[: -len(words)] if ends_so else command
    return [Method("terminal", program.title, command=(*start, *program.login_command[1:]))]


def choose(visiting: AgentVisit, offered: Sequence[Method], wanted: str | None) -> Method:
    """Choose the login method: the wanted one, the only one, or the one that the person picks.

    Raises:
        LoginFailed: there is none, or it is not clear which.
    """
    name = visiting.entry.name
    if not offered:
        raise LoginFailed(f"{name} offers no login over ACP. {_hint(visiting)}")
    ids = [method.id for method in offered]
    if wanted is None and len(offered) > 1 and sys.stdin.isatty():
        for number, method in enumerate(offered, start=1):
            about = ": ".join(filter(None, (method.name, method.description.strip())))
            _say(f"  {number}  {method.id} ({about})")
        typed = input(f"Which one (1-{len(offered)})? ").strip()
        wanted = ids[int(typed) - 1] if typed in map(str, range(1, len(ids) + 1)) else typed
    if wanted is None and len(offered) == 1:
        return offered[0]
    if wanted in ids:
        return offered[ids.index(wanted)]
    problem = "has several login methods" if wanted is None else f"has no login method {wanted!r}"
    raise LoginFailed(f"{name} {problem}. Name one with --method: {', '.join(ids)}.")


def _in_terminal(visiting: AgentVisit, method: Method, command: tuple[str, ...]) -> None:
    launch = replace(visiting.visits.launch, argv=command)
    workspace = make_workspace(launch, visiting.visits.workspace)
    own = launch.environment(new_marker(visiting.visits.bridge))
    environment = {**method.environment, **own}
    prepared = prepare(launch, workspace, environment.get("PATH", ""))
    status = run_in_terminal(prepared, name=launch.name, env=environment, cwd=workspace.folder)
    if status != 0:
        raise LoginFailed(
            f"the login of {launch.name} ended with status {status}. {_hint(visiting)}"
        )


def _hint(visiting: AgentVisit) -> str:
    if visiting.program is None:
        return "Log in as its documentation says, in its HOME, or set its key in env."
    return visiting.program.login


def _say(words: str) -> None:
    for line in printable(words).splitlines():
        sys.stderr.write(f"{one_line(line, limit=4000)}\n")
    sys.stderr.flush()
