"""Composes who each agent is: from its files, its entry, and the agents next to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from app.agents.files import AGENTS, IDENTITY, MEMORY, OWN, SHARED, SOUL, TOOLS, USER, AgentFiles
from app.agents.identity import read_identity
from app.agents.registry import Registry
from app.config import AgentEntry
from app.core.adapters import Adapter
from app.core.keys import SessionKey, adapter_name
from app.core.turns.standing import Colleague, Standing
from app.errors import FileRefused


@dataclass(frozen=True, slots=True)
class _Read:
    """The files of an agent as they were read."""

    stamp: object
    standing: Standing


class AgentPersonas:
    """Implements the core's port `Personas`; reads files only when one was written."""

    def __init__(
        self,
        files: AgentFiles,
        registry: Registry,
        adapters: Mapping[str, Adapter],
        list_skills: Callable[[str], str] = lambda _agent: "",
    ) -> None:
        """Prepare; `list_skills` tells an agent of the bridge's tools that it gets as a command."""
        self._files = files
        self._registry = registry
        self._adapters = adapters
        self._list_skills = list_skills
        self._known: dict[str, _Read] = {}

    async def standing(self, surface: SessionKey) -> Standing:
        """Return what the agent of a conversation is told at its beginning."""
        found = await asyncio.to_thread(self._read, surface.agent)
        return replace(
            found,
            base=found.base or self._describe(surface.agent),
            tools="\n\n".join(filter(None, (found.tools, self._list_skills(surface.agent)))),
            colleagues=tuple(self._introduce(each, surface) for each in self._others(surface)),
        )

    def _read(self, agent: str) -> Standing:
        """Read the agent's files, and those of all agents where it has none of its own."""
        try:
            stamp = (self._files.stamp(agent), self._files.stamp(None))
        except FileRefused:
            return Standing()
        known = self._known.get(agent)
        if known is None or known.stamp != stamp:
            texts = {name: self._text(None, name) for name in SHARED}
            texts |= {name: text for name in OWN if (text := self._text(agent, name)) is not None}
            standing = Standing(
                base=read_identity(texts.get(IDENTITY) or "").words,
                soul=texts.get(SOUL) or "",
                agents=texts[AGENTS] or "",
                tools=texts[TOOLS] or "",
                user=texts[USER] or "",
                memory=texts.get(MEMORY) or "",
            )
            known = self._known[agent] = _Read(stamp, standing)
        return known.standing

    def _text(self, agent: str | None, name: str) -> str | None:
        """Return the text of a file; a link is as good as none, and `doctor` tells of it."""
        try:
            found = self._files.read(agent, name)
        except FileRefused:
            return None
        return None if found is None else found.text

    def _describe(self, agent: str) -> str:
        """Say who an agent without a file is, as far as its entry says."""
        if agent not in self._registry:
            return ""
        entry = self._registry.get(agent)
        if entry.prompt is not None:
            return entry.prompt
        if entry.display_name is None and entry.description is None:
            return ""
        name = self._registry.display_name(agent).rstrip(".")
        return f"You are {name}. {entry.description or ''}".rstrip()

    def _others(self, surface: SessionKey) -> list[AgentEntry]:
        leaving = self._registry.leaving
        return [
            entry
            for entry in self._registry
            if entry.visible and entry.id != surface.agent and entry.id not in leaving
        ]

    def _introduce(self, entry: AgentEntry, surface: SessionKey) -> Colleague:
        adapter = self._adapters.get(adapter_name(surface.service, entry.id))
        program = self._registry.program(entry.id)
        return Colleague(
            self._registry.display_name(entry.id),
            entry.description or (program.description if program else ""),
            adapter.mention(entry.name) if adapter is not None else "",
        )
