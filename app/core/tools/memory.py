"""Lets an agent read, search and add to its own memory, and to no other one's.

A note of an agent that was told words of strangers is for people to decide on, as is every note
where the operator wants that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.consent.ledger import Ledger
from app.core.consent.terms import Terms
from app.core.feed import Feed
from app.core.memory import wording as notes
from app.core.memory.keeper import NOTE_CHARACTERS, MemoryKeeper, note_request
from app.core.memory.log import Remembered
from app.core.outbox import Outbox
from app.core.ports import Clock
from app.core.retry import persist
from app.core.stores.inbox import IntakeStore
from app.core.stores.sessions import SessionStore, TranscriptStore, TurnStore
from app.core.tools import wording
from app.core.tools.tool import Arguments, Caller, Result, Tool, ToolRefused
from app.core.turns.reflection import is_trusted
from app.core.types import Entry, TurnRef
from app.vault import Vault

ENTRIES: Final = 50
"""Notes that one call returns."""
ENTRIES_CHARACTERS: Final = 30_000
MEMORY_CHARACTERS: Final = 20_000
"""What one call returns of MEMORY.md: some five pages."""
A_DAY: Final = 20
"""Notes of one conversation and day: more is a log, not a memory."""
PROPOSED: Final = 3
"""Notes of one conversation that people are asked about at once."""


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """What the tools of memory work with."""

    keeper: MemoryKeeper
    read: Callable[[str], str]
    """Reads an agent's MEMORY.md; blocks."""
    terms: Mapping[str, Terms]
    sessions: SessionStore
    turns: TurnStore
    places: IntakeStore
    transcript: TranscriptStore
    ledger: Ledger
    outbox: Outbox
    feed: Feed
    clock: Clock
    vault: Vault
    name_of: Callable[[str], str]
    """Returns what people call an agent."""


class MemoryTools:
    """The tools with which agents remember."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts

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
        entries = await self._parts.keeper.entries(caller.agent)
        found = [each for each in entries if day in {"", each.day}]
        result = self._show(found, limit)
        if not day:
            text = await asyncio.to_thread(self._parts.read, caller.agent)
            result["memory"] = self._cut(self._parts.vault.redact(text))
        return result

    async def _search(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        found = await self._parts.keeper.entries(caller.agent, arguments["words"])
        return self._show(found, arguments.get("limit", 20))

    async def _write(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        parts, session = self._parts, caller.session
        text = parts.vault.redact(arguments["text"].strip())
        if not text:
            raise ToolRefused(wording.EMPTY_NOTE)
        entries = await parts.keeper.entries(caller.agent)
        if any(each.text == text for each in entries):
            return {"state": "kept", "note": wording.KNOWN_NOTE}
        terms = parts.terms.get(caller.agent, Terms())
        if terms.memory != "auto" or not await is_trusted(parts, session):
            return await self._propose(caller, text, terms)
        last = entries[0].day if entries else ""
        today = [each for each in entries if each.day == last and each.session == session.id]
        if len(today) >= A_DAY:
            raise ToolRefused(wording.TOO_MANY_NOTES.format(most=A_DAY))
        await parts.keeper.keep(caller.agent, session.id, text)
        words = notes.KEPT.format(agent=parts.name_of(caller.agent), text=text)
        notice = Entry("notice", words, session=session.id, turn=caller.turn.id)
        await persist(parts.clock, parts.transcript.append, [notice])
        parts.feed.notify(session.id)
        return {"state": "kept"}

    async def _propose(self, caller: Caller, text: str, terms: Terms) -> Result:
        """Ask people whether the agent keeps a note."""
        parts, session = self._parts, caller.session
        if parts.ledger.count_open(session.id, "memory") >= PROPOSED:
            raise ToolRefused(wording.TOO_MANY_PROPOSED.format(most=PROPOSED))
        request = note_request(parts.name_of(caller.agent), text)
        posts = await parts.keeper.propose(
            caller.agent,
            TurnRef(session.id, caller.turn.id),
            text,
            parts.ledger.presentable(request),
            seconds=terms.ask_seconds,
        )
        parts.outbox.send(*posts)
        parts.ledger.watch()
        parts.feed.notify(session.id)
        return {"state": "asked", "note": wording.NOTE_ASKED}

    def _check(self, caller: Caller) -> None:
        if self._parts.terms.get(caller.agent, Terms()).memory == "off":
            raise ToolRefused(wording.MEMORY_OFF)

    def _show(self, entries: Sequence[Remembered], limit: int) -> dict[str, Any]:
        shown: list[dict[str, str]] = []
        room = ENTRIES_CHARACTERS
        for entry in entries[:limit]:
            text = self._parts.vault.redact(entry.text)
            room -= len(text)
            if room < 0 and shown:
                break
            shown.append({"day": entry.day, "time": entry.time, "text": self._cut(text)})
        return {"notes": shown, "more": len(entries) - len(shown)}

    @staticmethod
    def _cut(text: str) -> str:
        more = len(text) - MEMORY_CHARACTERS
        return text if more <= 0 else text[:MEMORY_CHARACTERS] + wording.CUT.format(more=more)
