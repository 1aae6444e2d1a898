"""Finds the agents: the first of four sources that names any, and those that people added.

The sources are AGENTS_JSON, ACP_AGENT_COMMAND, known agents on PATH and the demo agent. An entry
that people added wins over a program of its name that was only found. A wrong entry is refused,
never silently skipped.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from app.config.agents import EXTENDS, KEYS, NAME, AgentConfig, AgentLimits, EntrySource
from app.config.fields import json_object
from app.config.records import AgentRecord
from app.config.settings import Settings
from app.config.sources import did_you_mean, find_open_folder, first_problem
from app.errors import ConfigurationError

AgentsSource = Literal["AGENTS_JSON", "ACP_AGENT_COMMAND", "path", "demo"]

STORED = "agents"
"""What messages name as the source of an entry that is in the store."""
DEMO = "demo"
DEMO_COMMAND = "agent-bridge-demo-agent"
_UNNAMED: Mapping[AgentsSource, EntrySource] = {"path": "found", "demo": "demo"}
"""Where agents are from that no setting names."""
_DEMO_FILE = Path(__file__).parents[1] / "demo_agent.py"


class KnownAgent(Protocol):
    """What the settings need to know about a known agent program."""

    @property
    def name(self) -> str:
        """What `driver` calls it."""

    @property
    def command(self) -> tuple[str, ...]:
        """The command that starts it."""

    @property
    def match(self) -> tuple[str, ...]:
        """The programs that are this agent, by file name."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that are this agent when a package runner starts it."""

    @property
    def env(self) -> tuple[str, ...]:
        """The variables it may receive from the settings."""

    @property
    def discover(self) -> bool:
        """Whether it is offered when it is found on PATH."""


@dataclass(frozen=True, slots=True)
class AgentDiscovery:
    """The machine's part: where to look, and which agents are known."""

    known: Sequence[KnownAgent]
    """The known agents, in the order in which they are offered."""
    path: str
    """PATH, as it was passed in."""
    home: Path
    """The user's HOME."""
    executable: Path
    """The interpreter that runs the bridge."""

    def driver(self, name: str | None) -> KnownAgent | None:
        """Return the known agent of that name."""
        return next((agent for agent in self.known if agent.name == name), None)


@dataclass(frozen=True, slots=True)
class ConfiguredAgents:
    """The agents in their order, which one is the default, and where they came from."""

    agents: Mapping[str, AgentConfig]
    """The entries by name."""
    plain: str
    """The agent that plain settings belong to."""
    default: str
    """The agent that requests without a name are for."""
    source: AgentsSource
    """What named those of the settings."""
    unasked: tuple[str, ...]
    """Agents without isolation whose entry does not say so explicitly."""

    def isolate_found(self) -> ConfiguredAgents:
        """Return the same agents, those found on PATH isolated as if a setting named them."""
        usual = {key: AgentConfig.model_fields[key].default for key in ("home", "sandbox")}
        isolated = {
            name: agent.model_copy(update=usual) if agent.source == "found" else agent
            for name, agent in self.agents.items()
        }
        return replace(self, agents=isolated)


def gather(
    settings: Settings, around: AgentDiscovery, records: Iterable[AgentRecord] = ()
) -> ConfiguredAgents:
    """Find the agents: those of the settings or of this machine, then those that people added.

    Raises:
        ConfigurationError: an entry is wrong.
    """
    source, entries = _entries(settings, around)
    origin = _UNNAMED.get(source, "environment")
    recorded = {record.name: record for record in records if record.present}
    added = {
        name: record.entry
        for name, record in recorded.items()
        if record.entry is not None and (origin != "environment" or name not in entries)
    }
    own = {name: raw for name, raw in extend(entries).items() if name not in added}
    extended = extend({**entries, **added}, STORED)
    sources: dict[str, EntrySource] = {
        **dict.fromkeys(own, origin),
        **dict.fromkeys(added, "stored"),
    }
    given = {name: _entry(source, name, raw, around) for name, raw in own.items()}
    stored = {name: _entry(STORED, name, extended[name], around) for name in added}
    marked = [name for name, agent in given.items() if agent.default]
    if len(marked) > 1:
        raise ConfigurationError(source, f"marks {len(marked)} agents as default", "Mark only one.")
    plain = marked[0] if marked else next(iter(entries))
    both = {**given, **stored}
    agents = {name: both[name] for name in (*entries, *added)}
    chosen = [name for name, record in recorded.items() if record.default and name in agents]
    if (demo := recorded.get(DEMO)) and demo.source == "demo" and DEMO not in agents:
        agents[DEMO] = _entry(STORED, DEMO, {"command": DEMO_COMMAND, "visible": False}, around)
        sources[DEMO] = "demo"
    return ConfiguredAgents(
        {
            name: _settle(agent, recorded.get(name), plain=name == plain, source=sources[name])
            for name, agent in agents.items()
        },
        plain,
        chosen[0] if chosen else plain,
        source,
        tuple(
            name
            for name, agent in agents.items()
            if agent.home == "user" and agent.sandbox != "none" and sources[name] != "found"
        ),
    )


def _entries(
    settings: Settings, around: AgentDiscovery
) -> tuple[AgentsSource, Mapping[str, Mapping[str, Any]]]:
    if settings.agents_json is not None:
        return "AGENTS_JSON", _parse_agents(settings.agents_json.get_secret_value())
    if settings.acp_agent_command is not None:
        return "ACP_AGENT_COMMAND", {"default": {"command": settings.acp_agent_command}}
    found = dict(_on_path(around))
    if found:
        return "path", found
    return "demo", {DEMO: {"command": DEMO_COMMAND}}


def _parse_agents(text: str) -> dict[str, dict[str, Any]]:
    try:
        entries = json_object(text)
    except PydanticCustomError as error:
        words = error.context or {}
    else:
        _check_names(entries)
        return entries
    raise ConfigurationError("AGENTS_JSON", words["problem"], words["remedy"])


def check_name(source: str, name: str, what: str = "the name") -> None:
    """Refuse a name that no agent can have, without repeating it: it may be anything.

    Raises:
        ConfigurationError: it is not valid.
    """
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            source,
            f"{what} is not valid",
            "Use lowercase letters, digits and hyphens, a letter first, at most 31 characters.",
        )


def _check_names(entries: Mapping[str, object]) -> None:
    if not entries:
        raise ConfigurationError("AGENTS_JSON", "names no agent", "Name one, or remove it.")
    for number, (name, raw) in enumerate(entries.items(), start=1):
        check_name("AGENTS_JSON", name, f"the name of agent {number}")
        if not isinstance(raw, dict):
            raise ConfigurationError(
                "AGENTS_JSON",
                f"agent {name!r} is not an object",
                f'Write "{name}": {{"command": "..."}}.',
            )


def extend(
    raw_entries: Mapping[str, Mapping[str, Any]], source: str = "AGENTS_JSON"
) -> dict[str, dict[str, Any]]:
    """Complete each entry that extends another with the keys of that one, and drop `extends`.

    Its own keys win, in `env` variable by variable. `default` is never inherited.

    Raises:
        ConfigurationError: an entry extends what it cannot.
    """
    extended: dict[str, dict[str, Any]] = {}
    for name, raw in raw_entries.items():
        own = dict(raw)
        if EXTENDS in own:
            base = _base(name, own.pop(EXTENDS), raw_entries, source)
            own = {key: value for key, value in base.items() if key != "default"} | own
            tables = base.get("env"), own.get("env")
            if all(isinstance(table, dict) for table in tables):
                own["env"] = {**base["env"], **own["env"]}
        extended[name] = own
    return extended


def _base(
    name: str, wanted: object, entries: Mapping[str, Mapping[str, Any]], source: str
) -> Mapping[str, Any]:
    """Return the entry that another one extends."""
    usable = [other for other, raw in entries.items() if EXTENDS not in raw]
    remedy = f"Name one of {', '.join(usable)}." if usable else "Remove it."
    # Do not repeat an unknown name: it may be anything.
    if not isinstance(wanted, str) or wanted not in entries:
        raise ConfigurationError(
            source, f"agent {name!r}: {EXTENDS} does not name another agent", remedy
        )
    if wanted not in usable:
        raise ConfigurationError(
            source,
            f"agent {name!r} extends {wanted!r}, which itself extends an agent",
            remedy,
        )
    return entries[wanted]


def _on_path(around: AgentDiscovery) -> Iterable[tuple[str, dict[str, Any]]]:
    seen: set[str] = set()
    for known in around.known:
        if not known.discover:
            continue
        places = (shutil.which(program, path=around.path) for program in known.match)
        place = next((place for place in places if place), None)
        # Two packages install a program of the same name: the first known one gets it. What every
        # user of the machine can replace is not taken unasked.
        if place is None or place in seen or find_open_folder(Path(place)) is not None:
            continue
        seen.add(place)
        command = [place, *known.command[1:]]
        yield known.name, {"command": command, "driver": known.name, "home": "user"}


def _entry(source: str, name: str, raw: Mapping[str, Any], around: AgentDiscovery) -> AgentConfig:
    unknown = next((key for key in raw if key not in KEYS), None)
    if unknown is not None:
        # Do not repeat a malformed key: it may be a value in the wrong place.
        shown = f" {unknown!r}" if re.fullmatch(r"[a-z][a-z_]{0,30}", unknown) else ""
        remedy = did_you_mean(unknown, KEYS, f"The keys are {', '.join(KEYS)}.")
        raise ConfigurationError(source, f"agent {name!r} has an unknown key{shown}", remedy)
    try:
        entry = AgentConfig.model_validate({"name": name, **raw}, context={"home": around.home})
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    else:
        return _apply_driver(source, entry, around)
    # Name the key with the problem, but nothing inside it that the user chose.
    known = [str(part) for part in where if part in KEYS or part in AgentLimits.model_fields]
    key = f": {'.'.join(known)}" if known else ""
    raise ConfigurationError(source, f"agent {name!r}{key} {problem}", remedy)


def _apply_driver(source: str, entry: AgentConfig, around: AgentDiscovery) -> AgentConfig:
    """Complete the entry from the known agent that its driver or command names."""
    known = around.driver(entry.driver)
    if entry.driver is not None and known is None:
        drivers = ", ".join(agent.name for agent in around.known)
        raise ConfigurationError(
            source,
            f"agent {entry.name!r}: driver is not a known agent",
            f"Known agents are {drivers}. Any command works without driver.",
        )
    if entry.url:
        return entry.model_copy(update={"ship": "none"})
    command = entry.command or (_installed(known, around) if known else ())
    if not command:
        raise ConfigurationError(
            source, f"agent {entry.name!r} has no command", "Add command, driver or url."
        )
    known = known or _guess_driver(command, around.known)
    return entry.model_copy(
        update={
            "command": _locate_demo(command, around),
            "driver": known.name if known else None,
        }
    )


def _installed(known: KnownAgent, around: AgentDiscovery) -> tuple[str, ...]:
    """Return a known agent's command, under an older name if only that is on PATH."""
    program, *arguments = known.command
    names = (program, *known.match)
    found = next((name for name in names if shutil.which(name, path=around.path)), program)
    return (found, *arguments)


def _guess_driver(command: tuple[str, ...], known: Sequence[KnownAgent]) -> KnownAgent | None:
    program = Path(command[0]).name
    # A package runner names the package among its arguments, perhaps with a version.
    packages = {re.sub(r"(?<=.)@[^/]*$", "", word) for word in command[1:]}
    for agent in known:
        if program in agent.match or packages & set(agent.packages):
            return agent
    return None


def _locate_demo(command: tuple[str, ...], around: AgentDiscovery) -> tuple[str, ...]:
    """Find the demo agent, which is installed with the bridge and seldom on PATH."""
    if command[0] != DEMO_COMMAND:
        return command
    script = around.executable.parent / DEMO_COMMAND
    if script.is_file():
        return (str(script), *command[1:])
    return (str(around.executable), str(_DEMO_FILE), *command[1:])


def _settle(
    agent: AgentConfig, record: AgentRecord | None, *, plain: bool, source: EntrySource
) -> AgentConfig:
    return agent.model_copy(
        update={
            "default": plain,
            "sandbox": "none" if agent.home == "user" else agent.sandbox,
            "id": record.id if record else agent.name,
            "former": record.former if record else (),
            "source": source,
        }
    )
