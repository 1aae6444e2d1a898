"""Lets an agent read, search and add to its own memory, and to no other one's.

A note of an agent that was told words of strangers is for people to decide on, as is every note
where the operator wants that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from app.agents.files import MEMORY
from app.core.tools.wording import CUT, TOO_MANY_PROPOSED
from app.features.memory import wording
from app.features.memory.model import NOTE_CHARACTERS, Remembered
from app.features.memory.service import Memory
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.types import TurnRef

ENTRIES: Final = 50
"""Notes that one call returns."""
ENTRIES_CHARACTERS: Final = 30_000
MEMORY_CHARACTERS: Final = 20_000
"""What one call returns of MEMORY.md: some five pages."""
A_DAY: Final = 20
"""Notes of one conversation and day: more is a log, not a memory."""
PROPOSED: Final = 3
"""Notes of one conversation that people are asked about at once."""


class MemoryTools:
    """The tools with which agents remember."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._runtime = memory.runtime

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        limit = {
            "type": "integer",
            "minimum": 1,
            "maximum": ENTRIES,
            "default": 20,
            "description": "How many notes to return.",
        }
        return (
            Tool(
                "memory_read",
                wording.MEMORY_READ,
                {
                    "day": {
                        "type": "string",
                        "pattern": r"^(\d{4}-\d\d-\d\d)?$",
                        "default": "",
                        "description": "Only the notes of this day, such as 2026-03-01.",
                    },
                    "limit": limit,
                },
                ("memory.read",),
                self._read,
            ),
            Tool(
                "memory_search",
                wording.MEMORY_SEARCH,
                {
                    "words": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 200,
                        "description": "Words that a note must all have.",
                    },
                    "limit": limit,
                },
                ("memory.read",),
                self._search,
            ),
            Tool(
                "memory_write",
                wording.MEMORY_WRITE,
                {
                    "text": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": NOTE_CHARACTERS,
                        "description": "The note: a few lines that make sense on their own.",
                    }
                },
                ("memory.write",),
                self._write,
            ),
        )

    async def _read(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        day, limit = arguments.get("day", ""), arguments.get("limit", 20)
        entries = await self._memory.entries(caller.agent)
        found = [each for each in entries if day in {"", each.day}]
        result = self._show(found, limit)
        if not day:
            file = await asyncio.to_thread(self._runtime.files.read, caller.agent, MEMORY)
            result["memory"] = self._cut("" if file is None else file.text)
        return result

    async def _search(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        found = await self._memory.entries(caller.agent, arguments["words"])
        return self._show(found, arguments.get("limit", 20))

    async def _write(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        session, ref = caller.session, TurnRef(caller.session.id, caller.turn.id)
        text = self._runtime.vault.redact(arguments["text"].strip())
        if not text:
            raise ToolRefused(wording.EMPTY_NOTE)
        entries = await self._memory.entries(caller.agent)
        if any(each.text == text for each in entries):
            return {"state": "kept", "note": wording.KNOWN_NOTE}
        if not await self._memory.may_keep(session):
            if self._runtime.ledger.count_open(session.id, "memory") >= PROPOSED:
                raise ToolRefused(TOO_MANY_PROPOSED.format(most=PROPOSED))
            await self._memory.propose(caller.agent, ref, text)
            return {"state": "asked", "note": wording.NOTE_ASKED}
        last = entries[0].day if entries else ""
        today = [each for each in entries if each.day == last and each.session == session.id]
        if len(today) >= A_DAY:
            raise ToolRefused(wording.TOO_MANY_NOTES.format(most=A_DAY))
        await self._memory.keep(caller.agent, ref, text)
        return {"state": "kept"}

    def _check(self, caller: Caller) -> None:
        if self._memory.mode(caller.agent) == "off":
            raise ToolRefused(wording.MEMORY_OFF)

    def _show(self, entries: Sequence[Remembered], limit: int) -> dict[str, Any]:
        shown: list[dict[str, str]] = []
        room = ENTRIES_CHARACTERS
        for entry in entries[:limit]:
            text = self._runtime.vault.redact(entry.text)
            room -= len(text)
            if room < 0 and shown:
                break
            shown.append({"day": entry.day, "time": entry.time, "text": self._cut(text)})
        return {"notes": shown, "more": len(entries) - len(shown)}

    def _cut(self, text: str) -> str:
        """Return the beginning of a long text, without secrets."""
        text = self._runtime.vault.redact(text)
        more = len(text) - MEMORY_CHARACTERS
        return text if more <= 0 else text[:MEMORY_CHARACTERS] + CUT.format(more=more)


def list_tools(memory: Memory) -> Sequence[Tool]:
    """List the tools with which agents remember."""
    return MemoryTools(memory).tools()
