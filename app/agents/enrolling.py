"""Gives every agent its id when a bridge starts: the one it had, or a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from app.agents.catalog import known_agents
from app.agents.registry import Registry, find_removed
from app.config import AgentConfig, AgentRecord, Configuration
from app.config.records import new_id

SINGLE = "default"
"""The name of the agent of ACP_AGENT_COMMAND."""


def open_registry(configuration: Configuration, stored: Sequence[AgentRecord]) -> Registry:
    """Read the configuration again with the agents of the store, each under its id.

    Raises:
        ConfigurationError: a stored entry does not fit the settings.
    """
    records = tuple(enrol(configuration, stored))
    return Registry(configuration.reader.read(records), known_agents(), records)


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
    """Return the program of an agent: its driver, else its command."""
    return (entry.driver,) if entry.driver else entry.command
