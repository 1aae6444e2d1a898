"""Writes the standing part of what an agent is told: who it is, and how to work here; pure.

An agent is told each part once per conversation, and again only when the part changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

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
