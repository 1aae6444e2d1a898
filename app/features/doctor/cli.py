"""`doctor`: runs every check and shows verdict, reason and remedy, line by line.

Every line passes the vault: even if a checked program prints a secret, it is not shown.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Final

import typer
from typer import Option

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.clock import SystemClock
from app.config import Configuration, from_process
from app.errors import BridgeError, ConfigurationError, Conflict, StoreUnavailable
from app.features.doctor import machine
from app.features.doctor.agents import check_agents, check_drift
from app.features.feature import GROUP as FEATURES
from app.server.agent_shapes import AgentOut
from app.server.shapes import Page
from app.services import added_by_packages, registered_services
from app.services.service import Finding, Severity, ok, problem
from app.terminal.api import connect, is_running
from app.terminal.framing import (
    Json,
    commands,
    count,
    examples,
    hint,
    one_line,
    read_all_agents,
    show_json,
)
from app.terminal.screen import margin
from app.terminal.stored import make_context, make_vault, read_registry
from app.vault import Vault

COLOURS: Final = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.PROBLEM: "red"}
INDENT: Final = max(map(len, Severity)) + 2


COMMANDS = commands()


@COMMANDS.command(
    epilog=examples("doctor", "doctor --json", "doctor --live slack claude --place C0123:U0456")
)
def doctor(
    live: Annotated[
        tuple[str, str] | None,
        Option(
            metavar="SERVICE AGENT",
            help="Try on the real platform what the bridge assumes about it, in --place.",
        ),
    ] = None,
    place: Annotated[
        str | None,
        Option(
            help="Where --live writes, and removes it again: CHANNEL:USER on Slack, OWNER/NAME on "
            "GitHub, an issue such as ENG-12 on Linear. Use one that is only for tests."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, Option(metavar="STEP", help="A step to play; repeat for more.")
    ] = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Do not ask before --live writes.")] = False,
    as_json: Json = False,
) -> None:
    """Check this machine, the settings and the services.

    Each line has a verdict, a reason and, if something is wrong, a remedy. The status is 1 if there
    is a problem; warnings do not count. With --live it plays steps on one platform instead, and the
    status is 1 if something differs from what the bridge assumes.
    """
    if live is None:
        healthy = check_all(as_json=as_json)
    elif place is None:
        raise Conflict("--live needs --place, a place on the platform that is only for tests")
    else:
        from app.features.doctor.live import Chosen, check_live  # noqa: PLC0415 - only this needs it

        configuration = read_all_agents()
        vault = make_vault(configuration)
        healthy = check_live(configuration, vault, Chosen(*live, place, only or ()), yes=yes)
    raise typer.Exit(0 if healthy else 1)


def check_all(*, as_json: bool = False) -> bool:
    """Check everything; returns whether the bridge can run."""
    report = Report(as_json=as_json)
    report.show(machine.python())
    try:
        registry = _with_stored_agents(from_process(known_agents(), registered_services()))
    except ConfigurationError as error:
        report.show(machine.refused(error))
        return report.end("Checks that need the configuration were skipped.")
    report.vault = make_vault(registry.configuration)
    for name, package in [*added_by_packages(), *added_by_packages(FEATURES)]:
        report.show(ok("plug-in", f"{name} from {package} runs as part of the bridge"))
    for finding in check_drift(registry):
        report.show(finding)
    asyncio.run(_check(registry.configuration, report))
    return report.end()


class Report:
    """The findings so far: shown at once, or as JSON at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._margin = margin(sys.stderr, quiet=as_json)
        self._found: list[dict[str, str]] = []
        self.vault = Vault()

    def show(self, finding: Finding) -> None:
        """Show one finding, and a status while the next check runs."""
        words = {"what": finding.what, "reason": finding.reason, "remedy": finding.remedy}
        clean = {name: self.vault.redact(one_line(hint(text))) for name, text in words.items()}
        self._found.append({"verdict": finding.verdict, **clean})
        if self._as_json:
            return
        self._margin.still()
        verdict = typer.style(f"{finding.verdict:{INDENT}}", fg=COLOURS[finding.verdict])
        typer.echo(f"{verdict}{clean['what']}: {clean['reason']}")
        if clean["remedy"]:
            typer.echo(f"{'':{INDENT}}→ {clean['remedy']}")
        self._margin.status("checking")

    def end(self, words: str = "") -> bool:
        """Sum up; returns whether there was no problem."""
        self._margin.still()
        verdicts = Counter(each["verdict"] for each in self._found)
        problems, warnings = verdicts[Severity.PROBLEM], verdicts[Severity.WARNING]
        if self._as_json:
            show_json({"healthy": not problems, "findings": self._found})
        else:
            counts = ((problems, "problem"), (warnings, "warning"))
            parts = (count(number, word) if number else f"no {word}s" for number, word in counts)
            total = f"{', '.join(parts)}.".capitalize()
            typer.echo(f"\n{' '.join(filter(None, (total, words)))}")
        return not problems


async def _check(configuration: Configuration, report: Report) -> None:
    for finding in (*machine.configuration_of(configuration), *machine.folder(configuration)):
        report.show(finding)
    report.show(machine.store(configuration))
    report.show(machine.git(configuration))
    async for finding in machine.check_shared_and_heard(configuration, SystemClock().now()):
        report.show(finding)
    known: Mapping[str, AgentOut] = {}
    if is_running(configuration.data_dir):
        try:
            async with connect(configuration) as bridge:
                if bridge is not None:
                    cards = await bridge.send(Page[AgentOut], "GET", "/agents")
                    known = {card.name: card for card in cards.items}
            report.show(ok("bridge", "running"))
        except BridgeError as error:
            remedy = "Check the log of the program that uses DATA_DIR."
            report.show(problem("bridge", str(error), remedy))
    else:
        report.show(ok("bridge", "not running"))
        report.show(machine.port(configuration))
    async for finding in check_agents(configuration, known):
        report.show(finding)
    context = make_context(configuration, report.vault)
    for service in registered_services():
        if service.name in configuration.services:
            async for finding in service.checks(context):
                report.show(finding)


def _with_stored_agents(configuration: Configuration) -> Registry:
    """Read the agents of the store too; the check of the database says if that fails."""
    with suppress(StoreUnavailable):
        return read_registry(configuration)
    return Registry(configuration)
