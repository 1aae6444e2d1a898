"""Lets an agent read, search and add to its own memory, and to no other one's.

A note of an agent that was told words of strangers is for people to decide on, as is every note
where the operator wants that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from app.agents.agent import Agent
from app.core.memory import wording as notes
from app.core.memory.keeper import NOTE_CHARACTERS, note_request
from app.core.memory.log import Remembered
from app.core.tools import wording
from app.core.turns.reflection import is_trusted
from app.core.turns.turn_context import TurnContext
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.types import Entry, TurnRef
from app.retry import persist

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

    def __init__(self, context: TurnContext, read: Callable[[str], str]) -> None:
        """Offer tools; `read` reads an agent's MEMORY.md and may block."""
        self._context = context
        self._read_file = read

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
        entries = await self._context.memory.entries(caller.agent)
        found = [each for each in entries if day in {"", each.day}]
        result = self._show(found, limit)
        if not day:
            text = await asyncio.to_thread(self._read_file, caller.agent)
            result["memory"] = self._cut(self._context.vault.redact(text))
        return result

    async def _search(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        found = await self._context.memory.entries(caller.agent, arguments["words"])
        return self._show(found, arguments.get("limit", 20))

    async def _write(self, caller: Caller, arguments: Arguments) -> Result:
        self._check(caller)
        context, session = self._context, caller.session
        text = context.vault.redact(arguments["text"].strip())
        if not text:
            raise ToolRefused(wording.EMPTY_NOTE)
        entries = await context.memory.entries(caller.agent)
        if any(each.text == text for each in entries):
            return {"state": "kept", "note": wording.KNOWN_NOTE}
        agent = context.agent(caller.agent)
        if agent.memory != "auto" or not await is_trusted(context, session):
            return await self._propose(caller, text, agent)
        last = entries[0].day if entries else ""
        today = [each for each in entries if each.day == last and each.session == session.id]
        if len(today) >= A_DAY:
            raise ToolRefused(wording.TOO_MANY_NOTES.format(most=A_DAY))
        await context.memory.keep(caller.agent, session.id, text)
        words = notes.KEPT.format(agent=context.name_of(caller.agent), text=text)
        notice = Entry("notice", words, session=session.id, turn=caller.turn.id)
        await persist(context.clock, context.transcript.append, [notice])
        context.feed.notify(session.id)
        return {"state": "kept"}

    async def _propose(self, caller: Caller, text: str, agent: Agent) -> Result:
        """Ask people whether the agent keeps a note."""
        context, session = self._context, caller.session
        if context.ledger.count_open(session.id, "memory") >= PROPOSED:
            raise ToolRefused(wording.TOO_MANY_PROPOSED.format(most=PROPOSED))
        request = note_request(context.name_of(caller.agent), text)
        posts = await context.memory.propose(
            caller.agent,
            TurnRef(session.id, caller.turn.id),
            text,
            context.ledger.present(request),
            seconds=agent.ask_seconds,
        )
        context.outbox.send(*posts)
        context.ledger.watch()
        context.feed.notify(session.id)
        return {"state": "asked", "note": wording.NOTE_ASKED}

    def _check(self, caller: Caller) -> None:
        if self._context.agent(caller.agent).memory == "off":
            raise ToolRefused(wording.MEMORY_OFF)

    def _show(self, entries: Sequence[Remembered], limit: int) -> dict[str, Any]:
        shown: list[dict[str, str]] = []
        room = ENTRIES_CHARACTERS
        for entry in entries[:limit]:
            text = self._context.vault.redact(entry.text)
            room -= len(text)
            if room < 0 and shown:
                break
            shown.append({"day": entry.day, "time": entry.time, "text": self._cut(text)})
        return {"notes": shown, "more": len(entries) - len(shown)}

    @staticmethod
    def _cut(text: str) -> str:
        more = len(text) - MEMORY_CHARACTERS
        return text if more <= 0 else text[:MEMORY_CHARACTERS] + wording.CUT.format(more=more)
