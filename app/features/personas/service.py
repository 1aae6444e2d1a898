"""Tells agents who they are: reads their files as parts of the system prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from typing_extensions import override

from app.agents.files import AGENTS, IDENTITY, MEMORY, OWN, SHARED, SOUL, TOOLS, USER
from app.agents.identity import read_identity
from app.core.runtime import Runtime
from app.errors import FileRefused
from app.features.part import Part
from app.model.keys import SessionKey


class Personas(Part):
    """Who each agent is; reads files only when one was written."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._files = runtime.files
        self._known: dict[str, tuple[object, Mapping[str, str]]] = {}
        """The parts of each agent, with the stamp of the files that they were read from."""

    @override
    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        """Return what the files say, or for an agent without a file what its entry says."""
        found = await asyncio.to_thread(self._read, surface.agent)
        return {**found, "base": found.get("base") or self._describe(surface.agent)}

    def _read(self, agent: str) -> Mapping[str, str]:
        """Read the agent's files, and those of all agents where it has none of its own."""
        try:
            stamp = (self._files.stamp(agent), self._files.stamp(None))
        except FileRefused:
            return {}
        before, parts = self._known.get(agent, (None, {}))
        if before != stamp:
            texts = {name: self._text(None, name) for name in SHARED}
            texts |= {name: text for name in OWN if (text := self._text(agent, name)) is not None}
            parts = {
                "base": read_identity(texts.get(IDENTITY) or "").words,
                "soul": texts.get(SOUL) or "",
                "agents": texts[AGENTS] or "",
                "tools": texts[TOOLS] or "",
                "user": texts[USER] or "",
                "memory": texts.get(MEMORY) or "",
            }
            self._known[agent] = stamp, parts
        return parts

    def _text(self, agent: str | None, name: str) -> str | None:
        """Return the text of a file; a link is as good as none, and `doctor` tells of it."""
        try:
            found = self._files.read(agent, name)
        except FileRefused:
            return None
        return None if found is None else found.text

    def _describe(self, agent: str) -> str:
        """Say who an agent without a file is, as far as its entry says."""
        registry = self.runtime.agents
        if agent not in registry:
            return ""
        entry = registry[agent].config
        if entry.prompt is not None:
            return entry.prompt
        if entry.display_name is None and entry.description is None:
            return ""
        name = registry[agent].title.rstrip(".")
        return f"You are {name}. {entry.description or ''}".rstrip()
