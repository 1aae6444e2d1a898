"""Holds the agents of a bridge by id, looks them up by name, and gives each its id at the start.

An unknown name is an error, never a reason to take another agent. One that returns keeps its id and
gets back what was archived, for the operator alone, when it was removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.agents.agent import Agent, build_agent
from app.agents.catalog import known_agents
from app.agents.files import IDENTITY, AgentFiles
from app.agents.identity import read_identity
from app.agents.isolation import Isolation
from app.config import AgentConfig, AgentRecord, AgentsSource, Configuration
from app.config.agents import EntrySource
from app.config.records import new_id
from app.errors import AgentRemoved, FileRefused, NotFound


class Registry(Mapping[str, Agent]):
    """The agents of this bridge as they are now."""

    def __init__(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord] = (),
        isolations: Mapping[str, Isolation] | None = None,
    ) -> None:
        self.configuration = configuration
        """The configuration with the agents of this moment; never changed, only replaced."""
        self.records = tuple(records)
        """What the store has of every agent there is or was."""
        self.isolations = isolations or {}
        """Where each agent runs, by id; empty where none is started."""
        self.leaving: set[str] = set()
        """Agents that are being removed: nothing new begins for them."""
        self.lock = asyncio.Lock()
        """Held by what changes the agents: one change after another."""
        self.names = CurrentNames(self)
        self._built: dict[str, Agent] = {}

    def replace(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord] | None = None,
        isolations: Mapping[str, Isolation] | None = None,
    ) -> None:
        """Let everything that looks from now on see other agents."""
        self.configuration = configuration
        self.records = self.records if records is None else tuple(records)
        self.isolations = self.isolations if isolations is None else isolations
        self._built = {}

    def __getitem__(self, agent: str) -> Agent:
        if agent not in self._built:
            config = self.configuration.agents[agent]
            program = next((each for each in known_agents() if each.name == config.driver), None)
            self._built[agent] = build_agent(
                self.configuration, config, program, self.isolations.get(agent)
            )
        return self._built[agent]

    def __iter__(self) -> Iterator[str]:
        return iter(self.configuration.agents)

    def __len__(self) -> int:
        return len(self.configuration.agents)

    @property
    def default(self) -> Agent:
        """The agent that requests without a name are for."""
        return self[self.configuration.default_agent]

    def find(self, name: str) -> Agent:
        """Return the agent of that name.

        Raises:
            AgentRemoved: there was one, or it is being removed.
            NotFound: there is no such agent.
        """
        found = next((each for each in self.values() if each.name == name), None)
        if found is not None and found.id not in self.leaving:
            return found
        if name in self.removed().values():
            raise AgentRemoved(name)
        raise NotFound("agent", name)

    def require_present(self, agent: str) -> None:
        """Refuse to go on with an agent that was removed.

        Raises:
            AgentRemoved: it was.
        """
        if (name := self.removed().get(agent)) is not None:
            raise AgentRemoved(name)

    def record(self, agent: str) -> AgentRecord:
        """Return what the store has of an agent."""
        return next(each for each in self.records if each.id == agent)

    def last_removed(self, name: str) -> AgentRecord | None:
        """Return the last agent of a name, if all of that name were removed."""
        if any(agent.name == name for agent in self.values()):
            return None
        return find_removed(name, self.records)

    def user_of(self, agent: str) -> int | None:
        """Return the user that an agent's processes become, if not the bridge's own."""
        isolation = self.isolations.get(agent)
        return isolation.user if isolation else None

    def removed(self) -> dict[str, str]:
        """Return the names of agents that were removed or are being removed, by id."""
        return {
            record.id: record.name
            for record in self.records
            if not record.present or record.id in self.leaving
        }

    def removed_titles(self) -> dict[str, str]:
        """Return what people called agents that were removed or are being removed, by id."""
        return {agent: self.title(agent) for agent in self.removed()}

    def name(self, agent: str) -> str:
        """Return the name of an agent, present or removed; the id itself if it is unknown."""
        return self[agent].name if agent in self else self.removed().get(agent, agent)

    def title(self, agent: str) -> str:
        """Return the name that people see of an agent, or saw of one that was removed."""
        if agent in self:
            return self[agent].title
        known = next((each.title for each in self.records if each.id == agent), "")
        return known or self.name(agent)


def find_removed(name: str, records: Iterable[AgentRecord]) -> AgentRecord | None:
    """Return the agent of that name that was removed last."""
    gone = [each for each in records if each.name == name and each.removed_at is not None]
    return max(gone, key=lambda record: record.removed_at or 0.0, default=None)


class CurrentNames(Mapping[str, str]):
    """What people call each agent, by id."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents

    def __getitem__(self, agent: str) -> str:
        return self._agents[agent].title

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)


SINGLE = "default"
"""The name of the agent of ACP_AGENT_COMMAND."""

_LABELS: Final[Mapping[EntrySource, str]] = {
    "found": "found on PATH",
    "demo": "comes with the bridge",
    "stored": "added",
}
_IN_SETTINGS: Final = "the settings describe {name}. Change it in AGENTS_JSON."
_BY_COMMAND: Final = "ACP_AGENT_COMMAND describes {name}. To change more, use AGENTS_JSON."
_FOUND: Final = (
    "{name} was found on PATH and has no entry. To change it, add it first: "
    "run `agent-bridge agents add {name}`, or use the button on its page."
)
_DEMO: Final = "{name} comes with the bridge and cannot be changed."

_KINDS: Final = {"homes": "", "agents": ".files"}
"""Folders that have one for each agent, and how its name ends in the archive."""
_DAY: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


def open_registry(configuration: Configuration, stored: Sequence[AgentRecord]) -> Registry:
    """Read the configuration again with the agents of the store, each under its id.

    Raises:
        ConfigurationError: a stored entry does not fit the settings.
    """
    records = tuple(enrol(configuration, stored))
    return Registry(configuration.reader.read(records), records)


def enrol(configuration: Configuration, records: Sequence[AgentRecord]) -> Iterator[AgentRecord]:
    """Yield the records, with one for every agent that has none.

    A program that is found on PATH again is the agent that it was. Any other that gets the name of
    an agent that was removed is compared with how that one was isolated.
    """
    given = {entry.name: entry for entry in configuration.agents.values()}
    back = {record.id: record for record in _find_returning(given, records)}
    records = [back.get(record.id, record) for record in records]
    present = {record.name for record in records if record.present}
    successor = find_successor(configuration, records)
    for record in records:
        known = given.get(record.name)
        if record.present and record.name == SINGLE and successor is not None:
            former = (*record.former, SINGLE)
            yield replace(record, name=successor.name, former=former, known_as=identify(successor))
        elif record.present and record.entry is None and known is not None:
            yield replace(record, known_as=identify(known))
        else:
            yield record
    taken = {record.id for record in records}
    for name, entry in given.items():
        if name in present or entry is successor:
            continue
        taken.add(own := new_id(name, taken))
        before = find_removed(name, records)
        isolation = before.isolation if before is not None else ""
        yield AgentRecord(id=own, name=name, known_as=identify(entry), isolation=isolation)


def _find_returning(
    given: Mapping[str, AgentConfig], records: Sequence[AgentRecord]
) -> Iterator[AgentRecord]:
    """Yield the records of found programs that were missing for a while, as present again."""
    present = {record.name for record in records if record.present}
    for name, entry in given.items():
        last = find_removed(name, records)
        if entry.source != "found" or name in present or last is None:
            continue
        if last.source == "found" and last.known_as == identify(entry):
            yield replace(last, removed_at=None)


def find_successor(
    configuration: Configuration, records: Sequence[AgentRecord]
) -> AgentConfig | None:
    """Find the agent that continues the sessions of a single agent that had no name of its own.

    That is the default agent, if it is new and the same program, as far as that is known: earlier
    releases did not note it.
    """
    names = {entry.name for entry in configuration.agents.values()}
    present = {record.name: record for record in records if record.present}
    single = present.get(SINGLE)
    heir = configuration.agents[configuration.plain_agent]
    if single is None or single.entry is not None or SINGLE in names or heir.name in present:
        return None
    return heir if single.known_as in {(), identify(heir)} else None


def identify(entry: AgentConfig) -> tuple[str, ...]:
    """Return the program of an agent: its address, its driver, else its command."""
    return (entry.driver,) if entry.driver and not entry.url else entry.argv


def label_origin(source: EntrySource, setting: AgentsSource) -> str:
    """Say in a few words where an agent comes from; `setting` has those of the settings."""
    return _LABELS.get(source, setting)


def explain_fixed(entry: AgentConfig, setting: AgentsSource) -> str:
    """Say why an agent cannot be changed here, and what to do; empty if it can."""
    if entry.source == "environment":
        words = _IN_SETTINGS if setting == "AGENTS_JSON" else _BY_COMMAND
    else:
        words = {"found": _FOUND, "demo": _DEMO}.get(entry.source, "")
    return words.format(name=entry.name)


def archive(shared_dir: Path, agent: str, now: float) -> None:
    """Move an agent's home and its files to the archive; safe to repeat."""
    folder = shared_dir / "archive"
    day = datetime.fromtimestamp(now, UTC).date().isoformat()
    for kind, ending in _KINDS.items():
        own = shared_dir / kind / agent
        if own.is_dir() and not own.is_symlink():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # An id is given once, so there is no other of this name.
            own.rename(folder / f"{agent}-{day}{ending}")


def restore(shared_dir: Path, agent: str) -> None:
    """Give an agent that is back its own home and files."""
    for kind, ending in _KINDS.items():
        own = shared_dir / kind / agent
        found = sorted((shared_dir / "archive").glob(f"{agent}-{_DAY}{ending}"))
        if found and not own.exists():
            own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            found[-1].rename(own)


def label(configuration: Configuration, files: AgentFiles) -> Configuration:
    """Return the configuration with what each agent's file says of how people see it."""
    agents = {agent: _label(entry, files) for agent, entry in configuration.agents.items()}
    return replace(configuration, agents=agents)


async def label_again(registry: Registry, files: AgentFiles) -> None:
    """Show all agents as their files now say; nothing else changes."""
    async with registry.lock:
        registry.replace(await asyncio.to_thread(label, registry.configuration, files))


def _label(entry: AgentConfig, files: AgentFiles) -> AgentConfig:
    try:
        found = files.read(entry.id, IDENTITY)
    except FileRefused:
        found = None
    identity = read_identity(found.text if found is not None else "")
    seen = {
        "own_name": identity.name,
        "own_emoji": identity.emoji,
        "own_colour": identity.colour,
    }
    return entry.model_copy(update=seen)
