"""Reads agents' files as what they are for: the system prompt, and how people see an agent.

An agent is told each part of its system prompt once per conversation, and again only when the part
changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from app.agents.files import (
    AGENTS,
    IDENTITY,
    MEMORY,
    OWN,
    SHARED,
    SOUL,
    TOOLS,
    USER,
    AgentFiles,
)
from app.agents.identity import read_identity
from app.agents.registry import Registry
from app.config import AgentConfig, Configuration
from app.errors import FileRefused
from app.markdown.hidden import strip
from app.model.keys import SessionKey

OPENING = '<instructions from="the operator of this bridge">'
CLOSING = "</instructions>"
HEADINGS = {
    "base": "Who you are",
    "soul": "Your character",
    "agents": "How to work here",
    "tools": "Your tools",
    "user": "Who you work for",
    "memory": "What you remember",
    "colleagues": "Your colleagues",
}
"""The parts in their order."""

_CHANGED = "[Your instructions changed. These parts replace what you were told before"
_GONE = "These parts no longer apply: {parts}"
_CLOSINGS = re.compile("</(?=data|instructions)", re.IGNORECASE)
_BROKEN = r"<\\/"


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """What an agent is told at the beginning of each conversation; empty parts are left out."""

    base: str = ""
    soul: str = ""
    agents: str = ""
    tools: str = ""
    user: str = ""
    memory: str = ""
    colleagues: str = ""

    def parts(self) -> dict[str, str]:
        """Return the parts that have a text, each with its heading, in order."""
        texts = {
            "base": self.base,
            "soul": self.soul,
            "agents": self.agents,
            "tools": self.tools,
            "user": self.user,
            "memory": strip(self.memory).text,
            "colleagues": self.colleagues,
        }
        found = {name: _CLOSINGS.sub(_BROKEN, text.strip()) for name, text in texts.items()}
        if found["memory"]:
            found["memory"] = f'<data from="your own notes">\n{found["memory"]}\n</data>'
        return {name: f"# {HEADINGS[name]}\n\n{text}" for name, text in found.items() if text}

    def digests(self) -> dict[str, str]:
        """Return a short value for each part that changes with its text."""
        return {
            name: hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
            for name, text in self.parts().items()
        }


class Personas(Protocol):
    """Knows who each agent is."""

    async def standing(self, surface: SessionKey, turn: int) -> SystemPrompt:
        """Return what the agent of a conversation is told at its beginning, as of a turn."""
        ...


def write_system_prompt(standing: SystemPrompt) -> str:
    """Write the standing part for an agent that takes a system prompt."""
    return "\n\n".join(standing.parts().values())


def write_for_prompt(standing: SystemPrompt, told: Mapping[str, str] | None) -> str:
    """Write what an agent has not been told yet, to be part of a prompt; empty if nothing.

    `told` are the digests of what it was told in this conversation, None if it was told nothing.
    """
    parts, now = standing.parts(), standing.digests()
    if not told:
        return _block(parts) if parts else ""
    changed = {name: text for name, text in parts.items() if told.get(name) != now[name]}
    gone = [HEADINGS[name] for name in HEADINGS if name in told and name not in now]
    if not changed and not gone:
        return ""
    note = f"{_CHANGED}." if changed else "[Your instructions changed."
    if gone:
        note += f" {_GONE.format(parts=', '.join(gone))}."
    return "\n".join(filter(None, (f"{note}]", _block(changed) if changed else "")))


def _block(parts: Mapping[str, str]) -> str:
    text = "\n\n".join(parts.values())
    return f"{OPENING}\n{text}\n{CLOSING}"


@dataclass(frozen=True, slots=True)
class _Read:
    """The files of an agent as they were read."""

    stamp: object
    standing: SystemPrompt


class AgentPersonas:
    """Implements the core's port `Personas`; reads files only when one was written."""

    def __init__(
        self,
        files: AgentFiles,
        registry: Registry,
        list_skills: Callable[[str], str] = lambda _agent: "",
        list_colleagues: Callable[[str, int], str] = lambda _agent, _turn: "",
    ) -> None:
        """Prepare; `list_skills` tells an agent of the bridge's tools that it gets as a command.

        `list_colleagues` tells it of the agents that it can ask in a turn.
        """
        self._files = files
        self._registry = registry
        self._list_skills = list_skills
        self._list_colleagues = list_colleagues
        self._known: dict[str, _Read] = {}

    async def standing(self, surface: SessionKey, turn: int) -> SystemPrompt:
        """Return what the agent of a conversation is told at its beginning, as of a turn."""
        found = await asyncio.to_thread(self._read, surface.agent)
        return replace(
            found,
            base=found.base or self._describe(surface.agent),
            tools="\n\n".join(filter(None, (found.tools, self._list_skills(surface.agent)))),
            colleagues=self._list_colleagues(surface.agent, turn),
        )

    def _read(self, agent: str) -> SystemPrompt:
        """Read the agent's files, and those of all agents where it has none of its own."""
        try:
            stamp = (self._files.stamp(agent), self._files.stamp(None))
        except FileRefused:
            return SystemPrompt()
        known = self._known.get(agent)
        if known is None or known.stamp != stamp:
            texts = {name: self._text(None, name) for name in SHARED}
            texts |= {name: text for name in OWN if (text := self._text(agent, name)) is not None}
            standing = SystemPrompt(
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


def label(configuration: Configuration, files: AgentFiles) -> Configuration:
    """Return the configuration with what each agent's file says of how people see it."""
    agents = {agent: _label(entry, files) for agent, entry in configuration.agents.items()}
    return replace(configuration, agents=agents)


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
