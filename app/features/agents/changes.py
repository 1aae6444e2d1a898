"""Adds, changes, renames and removes agents while the bridge runs, one change after another.

A change is checked as a whole, committed, and then applied: a turn that runs ends under the old
entry, the next one begins under the new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.agents.agent import Agent
from app.agents.checks import note_isolation
from app.agents.isolation import isolate_all
from app.agents.registry import SINGLE, enrol, explain_fixed, label, label_again, restore
from app.children.sandbox import Unavailable, find_bubblewrap
from app.config import AgentRecord, Configuration
from app.config.agents import EXTENDS
from app.config.records import merge, new_id, show_entry
from app.config.roster import check_name
from app.core.runtime import Runtime
from app.errors import Conflict
from app.features.agents.applying import AppliedChanges
from app.features.agents.connecting import try_out
from app.signals import Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

DEFAULT = "default"

Entry = Mapping[str, Any]
Given = Mapping[str, Mapping[str, str]]


class AgentChanges:
    """Changes the registry of a running bridge."""

    def __init__(self, runtime: Runtime, applied: AppliedChanges) -> None:
        self._runtime = runtime
        self._registry = runtime.agents
        self._stored = runtime.stores.agents
        self._applied = applied
        self._reader = runtime.configuration.reader
        self._lock = runtime.agents.lock
        self._tasks = Tasks("changes of other members")
        self._signals = runtime.signals
        self._signals.on(Topic.AGENTS, lambda _facts: self._follow_soon())
        self._signals.on(Topic.LABELS, lambda _facts: self._follow_labels())
        self._signals.on_sweep(self._follow_soon)

    async def close(self) -> None:
        """Stop looking at what was changed."""
        await self._tasks.close()
        await self._applied.close()

    def _follow_soon(self) -> None:
        self._tasks.start(self._follow(), name="agents")

    def _follow_labels(self) -> None:
        self._tasks.start(label_again(self._registry, self._runtime.files), name="labels")

    async def _follow(self) -> None:
        """Apply what another member changed."""
        async with self._lock:
            records = tuple(self._stored.records())
            known = {each.id: each for each in self._registry.records}
            if {each.id: each for each in records} == known:
                return
            configuration = await asyncio.to_thread(self._read, records)
            isolations = await asyncio.to_thread(isolate_all, configuration, self._runtime.outside)
            await self._applied.apply(configuration, records, isolations, leads=False)

    def show(self, name: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return an agent's entry and the fields of its stored credentials, without any secret.

        Raises:
            NotFound: there is no such agent.
            AgentRemoved: there was one.
        """
        agent = self._registry.find(name)
        record = self._registry.record(agent.id)
        fields = {service: sorted(given) for service, given in record.credentials.items()}
        return show_entry(agent.config, record), fields

    async def add(self, name: str, entry: Entry, credentials: Given | None = None) -> Agent:
        """Add an agent; one that was found on PATH gets an entry, and its conversations go on.

        Raises:
            Conflict: the name is taken.
            ConfigurationError: the entry or the credentials are wrong.
        """
        async with self._lock:
            check_name("agents", name)
            registry = self._registry
            there = next((each for each in registry.values() if each.name == name), None)
            if there is not None and there.config.source != "found":
                raise Conflict(f"there is an agent {name!r} already. Choose another name.")
            keys = _without_default(entry)
            if there is not None and keys.keys().isdisjoint({"command", "driver", EXTENDS}):
                keys = {"driver": there.config.driver, **keys}
            new = AgentRecord(id=new_id(name, (each.id for each in registry.records)), name=name)
            record = replace(
                registry.record(there.id) if there is not None else new,
                entry=keys,
                credentials=credentials or {},
            )
            await self._commit(*self._with_default(record, entry.get(DEFAULT)))
            return registry[record.id]

    async def isolate(self, name: str) -> Agent:
        """Give an agent that was found on PATH an entry, so that it runs isolated.

        Raises:
            NotFound: there is no such agent.
            Conflict: it has an entry already, or nothing can be isolated on this machine.
        """
        path = self._runtime.configuration.path
        found = await asyncio.to_thread(find_bubblewrap, path)
        if isinstance(found, Unavailable):
            raise Conflict(f"{name} cannot be isolated here: {found.reason}. {found.remedy}")
        return await self.add(self._registry.find(name).name, {})

    async def change(
        self, name: str, changes: Entry, credentials: Mapping[str, Any] | None = None
    ) -> Agent:
        """Change some keys of an agent's entry, or its credentials; None removes one.

        A table is merged: only the variables, options or fields that are named change.

        Raises:
            NotFound: there is no such agent.
            AgentRemoved: there was one.
            Conflict: its entry is in the settings.
            ConfigurationError: the new entry is wrong.
        """
        async with self._lock:
            record = self._changeable(name)
            owned = merge(record.credentials, credentials or {})
            changed = replace(
                record,
                entry=merge(record.entry or {}, _without_default(changes)),
                credentials={service: given for service, given in owned.items() if given},
            )
            await self._commit(*self._with_default(changed, changes.get(DEFAULT)))
            return self._registry[record.id]

    async def connect(self, name: str, service: str, credentials: Mapping[str, str]) -> list[str]:
        """Try credentials on a service, then store them; returns what could be better there.

        Raises:
            NotFound: there is no such agent or service.
            Conflict: its entry is in the settings, or the service refuses the credentials.
            ConfigurationError: they are malformed.
        """
        record = self._changeable(name)
        tried = replace(record, credentials=merge(record.credentials, {service: credentials}))
        configuration = await asyncio.to_thread(self._reader.read, self._with(tried))
        warnings = await try_out(configuration, service, record.id, self._runtime.stores)
        await self.change(name, {}, {service: credentials})
        return warnings

    async def rename(self, name: str, to: str) -> Agent:
        """Give an agent another name; its sessions, its home and its old addresses stay with it.

        One that was removed because its entry got another name goes on under that name.

        Raises:
            NotFound: there is no such agent.
            Conflict: the new name is taken, or its entry is in the settings.
            ConfigurationError: the new name is not valid.
        """
        async with self._lock:
            check_name("agents", to)
            if (gone := self._registry.last_removed(name)) is not None:
                return await self._succeed(gone, to)
            record = self._changeable(name)
            if any(each.name == to for each in self._registry.values()):
                raise Conflict(f"there is an agent {to!r} already. Choose another name.")
            former = tuple(each for each in (*record.former, name) if each != to)
            await self._commit(replace(record, name=to, former=former))
            return self._registry[record.id]

    async def _succeed(self, gone: AgentRecord, to: str) -> Agent:
        """Let an agent whose entry has another name now go on with its conversations."""
        registry = self._registry
        heir = registry.record(registry.find(to).id)
        if self._stored.open_sessions(heir.id):
            raise Conflict(f"{to} has conversations of its own already.")
        former = (*gone.former, gone.name)
        record = replace(heir, id=gone.id, former=former, removed_at=None)
        await self._commit(record, instead_of=heir.id)
        return registry[record.id]

    async def choose_default(self, name: str) -> Agent:
        """Let requests without a name go to this agent; addresses and credentials stay.

        Raises:
            NotFound: there is no such agent.
        """
        async with self._lock:
            registry = self._registry
            agent = registry.find(name)
            await self._commit(*self._with_default(registry.record(agent.id), True))
            return registry[agent.id]

    async def remove(self, name: str) -> None:
        """Remove an agent: its work is stopped, its history stays readable, its home is archived.

        Raises:
            NotFound: there is no such agent.
            Conflict: it is the default agent, or its entry is in the settings.
        """
        async with self._lock:
            record = self._changeable(name)
            current = self._runtime.configuration
            # If plain settings belong to it, its program is found on PATH again in its place.
            if record.id == current.default_agent != current.plain_agent:
                raise Conflict(f"{name} is the default agent. Make another one the default first.")
            await self._commit(self._gone(record))
            await self._applied.clear(record.id)

    async def acknowledge(self, name: str) -> Agent:
        """Note that a person has seen how an agent's isolation changed.

        Raises:
            NotFound: there is no such agent.
        """
        async with self._lock:
            registry = self._registry
            agent = registry.find(name)
            seen = replace(registry.record(agent.id), isolation_was="")
            await self._stored.save(seen)
            registry.replace(registry.configuration, self._with(seen))
            self._signals.send(Topic.AGENTS)
            return registry[agent.id]

    async def reload(self) -> None:
        """Read the file with the agents of the settings again, and apply what is new there.

        Raises:
            ConfigurationError: it cannot be used; nothing has changed.
        """
        async with self._lock:
            reader = self._reader.read_agents_again()
            records = self._registry.records
            given = label(await asyncio.to_thread(reader.read, records), self._runtime.files)
            enrolled = tuple(enrol(given, records))
            before, self._reader = self._reader, reader
            try:
                await self._reconcile(given, enrolled)
            except BaseException:
                self._reader = before
                raise

    async def settle(self) -> None:
        """Store what the start found: new agents of the settings, and those that are gone."""
        async with self._lock:
            registry = self._registry
            before = self._stored.records()
            registry.replace(registry.configuration, [*map(self._titled, registry.records)])
            if new := [record for record in registry.records if record not in before]:
                await self._restore(new, before)
                await self._stored.save(*new)
            await self._reconcile(registry.configuration, registry.records)
            for record in registry.records:
                if not record.present and self._stored.has_work(record.id):
                    await self._clear(record)

    async def _restore(self, now: Iterable[AgentRecord], before: Iterable[AgentRecord]) -> None:
        """Give agents that are back their homes and files again."""
        gone = {record.id for record in before if not record.present}
        for record in now:
            if record.present and record.id in gone:
                await asyncio.to_thread(restore, self._runtime.configuration.shared_dir, record.id)

    async def _reconcile(self, given: Configuration, records: Sequence[AgentRecord]) -> None:
        """Apply which agents there are; those without an entry anywhere are gone."""
        needs = self._stored.open_sessions
        there = {
            entry.name
            for entry in given.agents.values()
            if not entry.is_left_over or needs(entry.id)
        }
        gone = {
            record.id: self._gone(record)
            for record in records
            if record.present and record.entry is None and record.name not in there
        }
        settled = [gone.get(record.id, record) for record in records]
        before = {record.id: record for record in self._registry.records}
        changed = [each for each in settled if each != before.get(each.id)]
        if not changed and given.agents == self._runtime.configuration.agents:
            return
        for record in (each for each in gone.values() if each.source == "found"):
            logger.warning(
                "%s is not on PATH any more. Its conversations stay readable, and go on when it is "
                "found again at a start.",
                record.name,
            )
        for record in (each for each in gone.values() if each.source not in {"demo", "found"}):
            logger.warning(
                "%s was removed: its entry is gone from the settings. Its conversations stay "
                "readable, and its home is in the folder archive of DATA_DIR. If its entry has "
                "another name now, it goes on after: agent-bridge agents rename %s %s",
                record.name,
                record.name,
                given.agents[given.plain_agent].name if record.name == SINGLE else "NEW_NAME",
            )
        await self._commit(*changed)
        for record in gone.values():
            await self._clear(record)

    async def _clear(self, record: AgentRecord) -> None:
        """Settle what waits for an agent that is gone; a program may be found again."""
        if record.source == "found":
            await self._applied.suspend(record.id)
        else:
            await self._applied.clear(record.id)

    def _with_default(self, record: AgentRecord, wanted: object) -> list[AgentRecord]:
        """Return a record as the default, with the one that was it; else the record alone."""
        if wanted is None:
            return [record]
        if not wanted and record.id == self._runtime.configuration.default_agent:
            raise Conflict(f"{record.name} is the default agent. Make another one the default.")
        before = [
            replace(each, default=False)
            for each in self._registry.records
            if each.default and each.id != record.id and wanted
        ]
        return [*before, replace(record, default=bool(wanted))]

    def _titled(self, record: AgentRecord) -> AgentRecord:
        """Note what people call an agent that is here."""
        title = self._registry.title(record.id)
        return replace(record, title=title) if record.present else record

    def _gone(self, record: AgentRecord) -> AgentRecord:
        """Return what stays of an agent: its id and its names, and none of its secrets."""
        return replace(
            self._titled(record),
            entry=None,
            credentials={},
            default=False,
            isolation_was="",
            removed_at=self._runtime.clock.now(),
        )

    def _changeable(self, name: str) -> AgentRecord:
        agent = self._registry.find(name)
        if words := explain_fixed(agent.config, self._runtime.configuration.agents_source):
            raise Conflict(words)
        return self._registry.record(agent.id)

    def _read(self, records: Sequence[AgentRecord]) -> Configuration:
        return label(self._reader.read(records), self._runtime.files)

    def _enrol(
        self, records: tuple[AgentRecord, ...]
    ) -> tuple[Configuration, tuple[AgentRecord, ...]]:
        """Read the configuration with these records; a program that is found again gets one."""
        configuration = self._read(records)
        enrolled = tuple(enrol(configuration, records))
        return (configuration if enrolled == records else self._read(enrolled)), enrolled

    def _with(self, *changed: AgentRecord) -> tuple[AgentRecord, ...]:
        """Return all records, these in place of those with the same ids."""
        known = {record.id: record for record in self._registry.records}
        return tuple({**known, **{record.id: record for record in changed}}.values())

    async def _commit(self, *changed: AgentRecord, instead_of: str = "") -> None:
        """Check the whole configuration with these records, store them, and apply it.

        A record may take the place of that of an agent without sessions.
        """
        registry = self._registry
        records = tuple(each for each in self._with(*changed) if each.id != instead_of)
        configuration, records = await asyncio.to_thread(self._enrol, records)
        isolations = await asyncio.to_thread(isolate_all, configuration, self._runtime.outside)
        records = note_isolation(configuration, records, isolations)
        news = [record for record in records if record not in registry.records]
        gone = {each.id for each in changed if not each.present}
        await self._restore(news, registry.records)
        registry.leaving |= gone
        try:
            if instead_of:
                heir = next(record for record in records if record.id == changed[0].id)
                await self._stored.succeed(heir, instead_of)
            else:
                await self._stored.save(*news)
            self._signals.send(Topic.AGENTS)
            await self._applied.apply(configuration, records, isolations)
        finally:
            registry.leaving -= gone


def _without_default(entry: Entry) -> dict[str, Any]:
    """Return the keys that are stored with an agent; which one is the default, the record says."""
    return {key: value for key, value in entry.items() if key != DEFAULT}
