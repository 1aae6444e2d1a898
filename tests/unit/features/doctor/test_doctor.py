"""The checks: each has a verdict, a reason and a remedy, and none tells a secret."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.acp.card import Card, ProbeStep, card_path, write_card
from app.agents.catalog import AgentProgram, known_agents
from app.agents.checks import check_command, check_key
from app.agents.isolation import isolate_all
from app.agents.network import SHARED
from app.children.sandbox import Bubblewrap
from app.config import Configuration, ensure_secrets, load
from app.features.doctor import agents, machine
from app.server.agent_shapes import AgentOut, AvailabilityOut
from app.services import registered_services
from app.services.service import Finding, Severity
from app.store.database import Database, roll_back, sqlite_url
from app.store.database.schema import REVISION_BEFORE
from tests.support.bridge import DEMO

KEY = "sk-canary-0123456789abcdef"
Configure = Callable[..., Configuration]


@pytest.fixture(autouse=True)
def dumpable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the process of the tests as it is."""
    monkeypatch.setattr(agents, "make_undumpable", lambda: True)


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    tools = tmp_path / "tools"
    tools.mkdir()

    def make(agents: dict[str, Any] | None = None, **settings: str) -> Configuration:
        entries = agents or {"demo": {"command": DEMO, "sandbox": "none"}}
        given = {
            "DATA_DIR": str(tmp_path / "data"),
            "PATH": f"{tools}:/usr/bin:/bin",
            "AGENTS_JSON": json.dumps(entries),
            **settings,
        }
        return load(
            given, services=registered_services(), home=tmp_path / "home", known=known_agents()
        )

    return make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def taken() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def program(folder: Path, name: str, script: str) -> None:
    path = folder / "tools" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def known(name: str) -> AgentProgram:
    return next(each for each in known_agents() if each.name == name)


def verdicts(findings: Iterator[Finding]) -> list[tuple[str, Severity]]:
    return [(finding.what, finding.verdict) for finding in findings]


async def versions(configuration: Configuration, about: AgentProgram) -> list[Finding]:
    entry = configuration.agents[configuration.default_agent]
    isolation = isolate_all(configuration)[entry.name]
    return [each async for each in agents.versions(configuration, entry, about, isolation)]


def test_before_the_first_start_all_is_well_and_nothing_is_made(
    configure: Configure, tmp_path: Path
) -> None:
    configuration = configure()

    found = [*machine.folder(configuration), machine.store(configuration)]

    assert {finding.verdict for finding in found} == {Severity.OK}
    assert not (tmp_path / "data").exists()


def test_folders_and_files_that_others_can_read_are_warned_of(
    configure: Configure, data: Path, tmp_path: Path
) -> None:
    data.chmod(0o755)
    dotenv = tmp_path / ".env"
    dotenv.write_text("")
    dotenv.chmod(0o644)
    configuration = replace(configure(), dotenv=dotenv)

    (folder, *_), (*_, env) = (
        list(machine.folder(configuration)),
        machine.configuration_of(configuration),
    )

    assert (folder.verdict, folder.remedy) == (Severity.WARNING, f"chmod 700 {data}")
    assert (env.verdict, env.remedy) == (Severity.WARNING, f"chmod 600 {dotenv}")


def test_a_full_disk_is_a_problem(
    configure: Configure, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "NO_DISK", 1 << 62)

    assert ("DATA_DIR", Severity.PROBLEM) in verdicts(machine.folder(configure()))


def test_secrets_that_others_can_read_are_a_problem(configure: Configure, data: Path) -> None:
    configuration = configure()
    ensure_secrets(configuration)
    assert ("admin token", Severity.OK) in verdicts(machine.folder(configuration))

    (data / "secrets").chmod(0o644)

    assert ("admin token", Severity.PROBLEM) in verdicts(machine.folder(configuration))


def change_store(data: Path, *statements: str) -> None:
    """Make a store, and change it from outside."""
    database = Database(sqlite_url(data))
    database.open()
    with database.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.close()


def test_an_older_database_is_brought_up_at_the_next_start(
    configure: Configure, data: Path
) -> None:
    change_store(data)
    assert machine.store(configure()).verdict is Severity.OK
    revision = roll_back(sqlite_url(data))

    found = machine.store(configure())

    assert (found.verdict, f"schema {revision}, upgraded" in found.reason) == (Severity.OK, True)


@pytest.mark.parametrize("version", ["0000", "9999"])
def test_a_database_of_a_version_that_is_not_known_is_a_problem(
    configure: Configure, data: Path, version: str
) -> None:
    change_store(data, f"update alembic_version set version_num = '{version}'")

    assert machine.store(configure()).verdict is Severity.PROBLEM


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("drop table spending", "spending"),
        ("drop table memory_text", "memory_text"),
        ("alter table session drop column served_by", "session.served_by"),
    ],
)
@pytest.mark.parametrize("undo", [[], [REVISION_BEFORE]])
def test_a_table_or_a_column_that_is_missing_is_a_problem(
    configure: Configure, data: Path, statement: str, name: str, undo: list[str]
) -> None:
    change_store(data)
    assert [roll_back(sqlite_url(data)) for _ in undo] == undo
    with closing(sqlite3.connect(data / "bridge.db")) as store, store:
        store.execute(statement)

    found = machine.store(configure())

    assert (found.verdict, f"missing is {name}" in found.reason) == (Severity.PROBLEM, True)
    assert "agent-bridge restore" in found.remedy


def test_an_upgrade_that_was_cut_off_is_told_with_what_to_do(
    configure: Configure, data: Path
) -> None:
    change_store(data, "delete from alembic_version")

    found = machine.store(configure())

    assert (found.verdict, "was cut off" in found.reason) == (Severity.WARNING, True)
    assert "Start the bridge" in found.remedy


def test_a_database_that_cannot_be_read_is_a_problem(configure: Configure, data: Path) -> None:
    (data / "bridge.db").write_text("no database" * 100)

    assert machine.store(configure()).verdict is Severity.PROBLEM


def test_a_port_that_somebody_else_has_is_a_problem(configure: Configure, taken: int) -> None:
    finding = machine.port(configure(PORT=str(taken)))

    assert finding.verdict is Severity.PROBLEM
    assert "PORT" in finding.remedy


def test_a_machine_without_git_is_warned_of(configure: Configure, tmp_path: Path) -> None:
    assert machine.git(replace(configure(), path=str(tmp_path))).verdict is Severity.WARNING


def test_a_command_that_is_missing_is_told_with_how_to_install_it(configure: Configure) -> None:
    configuration = configure({"claude": {"driver": "claude", "sandbox": "none"}})
    entry = configuration.agents["claude"]

    finding = agents.read(entry, check_command(configuration, entry, known("claude")))

    assert finding.verdict is Severity.PROBLEM
    assert finding.remedy == f"Install it: {known('claude').install}"


def test_a_key_is_told_by_its_name_and_its_absence_with_the_way_to_log_in(
    configure: Configure,
) -> None:
    entries = {"claude": {"driver": "claude", "sandbox": "none"}}
    other = {"claude": {**entries["claude"], "env": {"ANTHROPIC_BASE_URL": "http://gateway"}}}
    without, gateway = configure(entries), configure(other)
    given = configure(entries, ANTHROPIC_API_KEY=KEY)
    about = known("claude")

    missing, unset, present = (
        agents.read(each.agents["claude"], check)
        for each in (without, gateway, given)
        if (check := check_key(each, each.agents["claude"], about)) is not None
    )

    assert (missing.verdict, missing.reason) == (Severity.WARNING, "Not logged in")
    assert missing.remedy == ("Run `agent-bridge agents login claude`, or set ANTHROPIC_API_KEY.")
    assert (unset.verdict, unset.remedy) == (Severity.WARNING, about.login)
    assert present == Finding(Severity.OK, "claude", "gets ANTHROPIC_API_KEY")


@pytest.mark.parametrize(
    ("steps", "verdict", "words"),
    [
        (None, Severity.OK, "not probed yet; `agent-bridge agents probe demo`"),
        (
            (ProbeStep("load", "works", 1.0), ProbeStep("list", "absent", 0.0)),
            Severity.OK,
            "1 of 2 work",
        ),
        ((ProbeStep("load", "fails", 1.0, "it died"),), Severity.WARNING, "probed: load: it died"),
    ],
)
def test_what_a_probe_saw_is_told(
    configure: Configure,
    data: Path,
    steps: tuple[ProbeStep, ...] | None,
    verdict: Severity,
    words: str,
) -> None:
    configuration = configure()
    entry = configuration.agents["demo"]
    for seen in [] if steps is None else [steps]:
        write_card(card_path(data, "demo"), Card("demo", entry.command, "1", 0.0, seen))

    finding = agents.probed(configuration, entry)

    assert finding.verdict is verdict
    assert words in finding.reason


def test_a_probe_of_another_command_tells_nothing(configure: Configure, data: Path) -> None:
    failed = (ProbeStep("load", "fails", 1.0),)
    write_card(card_path(data, "demo"), Card("demo", ("another",), "1", 0.0, failed))
    configuration = configure()

    finding = agents.probed(configuration, configuration.agents["demo"])

    assert "not probed yet" in finding.reason


def test_an_agent_that_lives_in_the_persons_home_needs_no_key(configure: Configure) -> None:
    configuration = configure({"claude": {"driver": "claude", "home": "user", "sandbox": "none"}})

    assert check_key(configuration, configuration.agents["claude"], known("claude")) is None


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("echo v22.1.0", Severity.OK),
        ("echo v18.19.1", Severity.PROBLEM),
        ("exit 1", Severity.PROBLEM),
    ],
)
async def test_a_node_that_is_missing_or_too_old_is_a_problem(
    configure: Configure, data: Path, tmp_path: Path, script: str, verdict: Severity
) -> None:
    program(tmp_path, "node", script)

    (finding,) = await versions(configure(), replace(known("claude"), version=()))

    assert finding.verdict is verdict


async def test_a_version_is_asked_for_in_the_agents_own_environment(
    configure: Configure, data: Path, tmp_path: Path
) -> None:
    program(tmp_path, "agent", 'echo "agent 1.2 of ${HOME##*/}"')
    about = replace(known("demo"), version=("agent", "--version"))

    (finding,) = await versions(configure(), about)

    assert finding == Finding(Severity.OK, "demo", "version agent 1.2 of demo")


@pytest.mark.parametrize("script", ["exec sleep 60", "exit 3", "yes | head -c 100000; exit 1"])
async def test_a_version_that_does_not_come_is_warned_of_within_its_bound(
    configure: Configure,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
) -> None:
    monkeypatch.setattr(agents, "VERSION_SECONDS", 0.5)
    program(tmp_path, "agent", script)
    about = replace(known("demo"), version=("agent", "--version"))

    (finding,) = await versions(configure(), about)

    assert finding.verdict is Severity.WARNING


@pytest.mark.parametrize(
    ("driver", "mode", "verdict", "words"),
    [
        ("claude", None, Severity.OK, "asks before it acts (mode default)"),
        ("claude", "default", Severity.OK, "asks before it acts (mode default)"),
        ("claude", "acceptEdits", Severity.WARNING, "mode 'acceptEdits' is not the mode"),
        ("opencode", None, Severity.OK, "asks before it acts"),
        (None, None, Severity.WARNING, "depends on its own settings"),
    ],
)
def test_an_agent_that_may_act_unasked_is_warned_of(
    configure: Configure, driver: str | None, mode: str | None, verdict: Severity, words: str
) -> None:
    configuration = configure({"mine": {"command": "mine", "driver": driver, "mode": mode}})

    finding = agents.mode(configuration.agents["mine"], known(driver) if driver else None)

    assert finding.verdict is verdict
    assert words in finding.reason


def test_what_a_checkout_can_do_to_an_agent_is_told(configure: Configure) -> None:
    entry = configure().agents["demo"]

    kept, refused, unknown = (
        agents.checkout(entry, each) for each in (known("claude"), known("opencode"), None)
    )

    assert kept == Finding(Severity.OK, "demo", "ignores agent settings inside repositories")
    assert "does not start in a checkout with .opencode" in refused.reason
    assert unknown.verdict is Severity.WARNING


async def test_what_a_session_may_use_is_told_with_what_cannot_be_held(
    configure: Configure, data: Path
) -> None:
    configuration = configure()
    entry, isolation = configuration.agents["demo"], isolate_all(configuration)["demo"]
    old = replace(isolation, sandbox=Bubblewrap("bwrap", can_size=False))

    held, not_held = agents.limits(entry, isolation), agents.limits(entry, old)

    assert held.verdict is Severity.OK
    assert held.reason.startswith("limits: 2000 processes, ")
    assert not_held.verdict is Severity.WARNING
    assert not_held.remedy == "Install bubblewrap 0.7 or later."


async def test_every_agent_is_tried_from_inside(configure: Configure, data: Path) -> None:
    found = [each async for each in agents.check_agents(configure())]

    assert [finding.what for finding in found] == ["demo"] * 7
    assert found[-1].verdict is Severity.WARNING
    assert found[-1].reason.startswith("not isolated: it runs as ")
    assert found[-1].remedy == (
        'To isolate it, remove "sandbox": "none" from its entry in AGENTS_JSON.'
    )


async def test_agents_are_tried_without_a_data_folder_and_none_is_made(
    configure: Configure, tmp_path: Path
) -> None:
    found = [each async for each in agents.check_agents(configure())]

    assert [finding.what for finding in found] == ["demo"] * 7
    assert not (tmp_path / "data").exists()


async def test_what_a_running_bridge_found_out_is_believed(
    configure: Configure, data: Path
) -> None:
    card = AgentOut(
        **dict.fromkeys(("id", "name", "display_name", "description", "command"), "demo"),
        default=True,
        isolation="isolated (bubblewrap)",
        services=[],
        availability=AvailabilityOut(state="limited", reason="Hit its limit.", remedy="Wait."),
    )

    found = [each async for each in agents.check_agents(configure(), {"demo": card})]

    assert found[-2:] == [
        Finding(Severity.WARNING, "demo", "Hit its limit", "Wait."),
        Finding(Severity.OK, "demo", "isolated (bubblewrap)"),
    ]


def test_an_agent_in_the_network_of_this_machine_is_worth_a_warning(configure: Configure) -> None:
    words = f"isolated (bubblewrap), {SHARED}"

    finding = agents.read_isolation(configure().agents["demo"], words)

    assert (finding.verdict, finding.reason) == (Severity.WARNING, words)
    assert "--unshare-net" in finding.remedy


async def test_an_agent_that_cannot_be_isolated_is_a_problem(
    configure: Configure, tmp_path: Path
) -> None:
    entries = {"demo": {"command": DEMO, "sandbox": "bubblewrap"}}
    configuration = replace(configure(entries), path=str(tmp_path))

    (finding,) = [each async for each in agents.check_agents(configuration)]

    assert (finding.what, finding.verdict) == ("isolation", Severity.PROBLEM)
