"""`doctor`: runs every check and shows verdict, reason and remedy, line by line.

Every line passes the vault: even if a checked program prints a secret, it is not shown.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import typer

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.cli.asking.screen import Margin, margin
from app.cli.checks import machine
from app.cli.checks.agents import check_agents, check_drift
from app.cli.checks.sharing import check_sharing
from app.cli.invocation import hint
from app.cli.lines import one_line
from app.cli.running import is_running
from app.cli.stored import make_guard, read_registry
from app.cli.tables import show_json
from app.config import Configuration, ensure_secrets, from_process
from app.errors import BridgeError, ConfigurationError, StoreUnavailable
from app.model.findings import Finding, Verdict, ok, problem
from app.server.agent_shapes import AgentOut
from app.services import added_services, registered_services
from app.services.service import CheckContext
from app.store.reading import reading
from app.vault import Vault

COLOURS: Final = {Verdict.OK: "green", Verdict.WARNING: "yellow", Verdict.PROBLEM: "red"}
INDENT: Final = max(map(len, Verdict)) + 2


def doctor(*, as_json: bool = False) -> bool:
    """Check everything; returns whether the bridge can run."""
    report = Collection() if as_json else Report(margin(sys.stderr, quiet=False))
    report.show(machine.python())
    try:
        registry = _with_stored_agents(from_process(known_agents(), registered_services()))
    except ConfigurationError as error:
        report.show(machine.refused(error))
        return report.end("Checks that need the configuration were skipped.")
    report.vault = make_vault(registry.configuration)
    for name, package in added_services():
        report.show(ok("plug-in", f"{name} from {package} runs as part of the bridge"))
    for finding in check_drift(registry):
        report.show(finding)
    asyncio.run(_check(registry.configuration, report))
    return report.end()


class Report:
    """The findings so far."""

    def __init__(self, aside: Margin) -> None:
        self._margin = aside
        self._count: Counter[Verdict] = Counter()
        self.vault = Vault()

    def show(self, finding: Finding) -> None:
        """Show one finding, and a status while the next check runs."""
        self._margin.still()
        self._count[finding.verdict] += 1
        verdict = typer.style(f"{finding.verdict:{INDENT}}", fg=COLOURS[finding.verdict])
        typer.echo(f"{verdict}{self._clean(f'{finding.what}: {finding.reason}')}")
        if finding.remedy:
            typer.echo(f"{'':{INDENT}}→ {self._clean(finding.remedy)}")
        self._margin.status("checking")

    def end(self, words: str = "") -> bool:
        """Sum up; returns whether there was no problem."""
        self._margin.still()
        problems, warnings = self._count[Verdict.PROBLEM], self._count[Verdict.WARNING]
        total = f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}."
        typer.echo(f"\n{' '.join(filter(None, (total.capitalize(), words)))}")
        return not problems

    def _clean(self, text: str) -> str:
        return self.vault.redact(one_line(hint(text)))


class Collection(Report):
    """The findings as JSON, printed at the end."""

    def __init__(self) -> None:
        super().__init__(margin(sys.stderr, quiet=True))
        self._found: list[dict[str, str]] = []

    def show(self, finding: Finding) -> None:
        """Keep one finding."""
        self._count[finding.verdict] += 1
        words = {"what": finding.what, "reason": finding.reason, "remedy": finding.remedy}
        cleaned = {name: self._clean(text) for name, text in words.items()}
        self._found.append({"verdict": finding.verdict, **cleaned})

    def end(self, words: str = "") -> bool:  # noqa: ARG002 - for people
        """Print them; returns whether there was no problem."""
        healthy = not self._count[Verdict.PROBLEM]
        show_json({"healthy": healthy, "findings": self._found})
        return healthy


def make_context(configuration: Configuration, vault: Vault) -> CheckContext:
    """Make what the checks of services get."""
    return CheckContext(
        configuration=configuration,
        vault=vault,
        reading=lambda: reading(configuration.database_url, make_guard(configuration, vault)),
    )


async def _check(configuration: Configuration, report: Report) -> None:
    for finding in (*machine.configuration_of(configuration), *machine.folder(configuration)):
        report.show(finding)
    report.show(machine.store(configuration))
    report.show(machine.git(configuration))
    async for finding in check_sharing(configuration):
        report.show(finding)
    known: Mapping[str, AgentOut] = {}
    if is_running(configuration.data_dir):
        finding, known = await _running(configuration)
        report.show(finding)
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


async def _running(configuration: Configuration) -> tuple[Finding, Mapping[str, AgentOut]]:
    """Check the running bridge, and read what it found out about its agents."""
    from app.cli.client import connected  # noqa: PLC0415 - 0.2 s that only this needs

    try:
        async with connected(configuration) as client:
            cards = await client.agents() if client is not None else []
    except BridgeError as error:
        return problem("bridge", str(error), "Check the log of the program that uses DATA_DIR."), {}
    return ok("bridge", "running"), {card.name: card for card in cards}


def make_vault(configuration: Configuration) -> Vault:
    """Collect the secrets that must not be shown."""
    vault = Vault(configuration.secret_values())
    if (configuration.shared_dir / "secrets").exists():
        with suppress(ConfigurationError):
            vault.register(*ensure_secrets(configuration).values())
    return vault


def _with_stored_agents(configuration: Configuration) -> Registry:
    """Read the agents of the store too; the check of the database says if that fails."""
    with suppress(StoreUnavailable):
        return read_registry(configuration)
    return Registry(configuration, known_agents())


def _count(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
