"""Keeps what agents remember: writes notes into daily logs and finds them again.

Memory never crosses agents: every call names one agent and touches its files alone. A note is a row
before it is a line of a file, so that a crash neither loses nor doubles it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from typing_extensions import override

from app.clock import Clock
from app.core.hooks import Hook
from app.core.memory import wording
from app.core.memory.log import Remembered, add_entry, drop_entry, parse_log
from app.errors import BridgeError, NotFound
from app.model.asks import LEAVE, TAKE
from app.model.types import TurnRef
from app.model.updates import AskOption, AskRequest
from app.retry import persist
from app.signals import ALONE, Signals, Topic
from app.store.memory import MemoryStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

NOTE_CHARACTERS: Final = 2_000
"""Five lines, with room."""
RECALLED: Final = 5
RECALLED_CHARACTERS: Final = 2_000
"""What the first prompt of a conversation brings of it."""
LISTED: Final = 200
_WORD = re.compile(r"\w{4,}")
"""Shorter words are in every text."""
_QUERY_WORDS: Final = 30
_LINE = re.compile(r"[-*•]\s+(.*\S)")


class MemoryFiles(Protocol):
    """The daily logs of agents, as files; every call blocks."""

    def days(self, agent: str) -> Mapping[str, str]:
        """Tell the version of each daily log there is."""
        ...

    def log(self, agent: str, day: str) -> str:
        """Read a daily log; empty if there is none."""
        ...

    def change_log(self, agent: str, day: str, change: Callable[[str], str]) -> None:
        """Replace a daily log by what a function makes of it; an empty one is removed."""
        ...


class MemoryKeeper(Hook):
    """The memory of all agents, each for itself."""

    ask_kind = "memory"

    def __init__(
        self, store: MemoryStore, files: MemoryFiles, clock: Clock, *, signals: Signals = ALONE
    ) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._writing = asyncio.Lock()
        self._tasks = Tasks("memory")
        self._signals = signals
        signals.on(Topic.NOTES, lambda _facts: self.start())

    def start(self) -> None:
        """Write what people let agents keep, in the background; only the leader writes."""
        if self._signals.is_leader:
            self._tasks.start(self.write(), name="notes")

    @override
    def on_answered(self) -> None:
        self.start()

    async def close(self) -> None:
        """Stop writing; what is not in its file yet is written at the next start."""
        await self._tasks.close()

    async def propose(
        self, agent: str, ref: TurnRef, text: str, request: AskRequest, *, seconds: float
    ) -> Sequence[int]:
        """Ask people whether an agent keeps a note; return the posts to send."""
        deadline = self._clock.now() + seconds
        return await persist(
            self._clock, self._store.propose, agent, ref, text, request, deadline=deadline
        )

    async def keep(self, agent: str, session: int, text: str) -> None:
        """Keep a note that needs no answer."""
        await persist(self._clock, self._store.keep, agent, session, text)
        if self._signals.is_leader:
            await self.write()
        else:
            self._signals.send(Topic.NOTES)

    async def write(self) -> None:
        """Write the notes that are to be kept into their files; safe to repeat."""
        async with self._writing:
            for note in await self._store.kept():
                at = datetime.fromtimestamp(note.at, UTC)
                entry = Remembered(
                    f"{at:%Y-%m-%d}", note.text, f"{at:%H:%M}", note.session, note.id
                )
                try:
                    await self._change(note.agent, entry.day, lambda log: add_entry(log, entry))  # noqa: B023
                except (OSError, BridgeError) as error:
                    logger.warning("%s cannot keep a note yet: %s", note.agent, error)
                    continue
                await persist(self._clock, self._store.written, note.id)

    async def recall(self, agent: str, words: str) -> tuple[Remembered, ...]:
        """Find what an agent noted about what these words are about, within bounds."""
        wanted = list(dict.fromkeys(_WORD.findall(words.casefold())))[:_QUERY_WORDS]
        found: list[Remembered] = []
        room = RECALLED_CHARACTERS
        for entry in await self._find(agent, wanted, every=False, limit=RECALLED):
            room -= len(entry.text)
            if room < 0:
                break
            found.append(entry)
        return tuple(found)

    async def entries(self, agent: str, words: str = "") -> Sequence[Remembered]:
        """List an agent's entries, the newest first, or those with all these words."""
        if wanted := words.split():
            return await self._find(agent, wanted[:_QUERY_WORDS], every=True, limit=LISTED)
        listed: list[Remembered] = []
        for day in sorted(await asyncio.to_thread(self._files.days, agent), reverse=True):
            listed += reversed(await self._read(agent, day))
            if len(listed) >= LISTED:
                break
        return listed[:LISTED]

    async def remove(self, agent: str, day: str, entry: str) -> None:
        """Remove one entry.

        Raises:
            NotFound: there is none, or it was changed meanwhile.
        """
        if not any(each.id == entry for each in await self._read(agent, day)):
            raise NotFound("entry", f"{day}/{entry}")
        await self._change(agent, day, lambda log: drop_entry(day, log, entry))

    async def forget(self, agent: str) -> None:
        """Forget what waits and what the search knows of an agent that was removed."""
        await persist(self._clock, self._store.forget, agent)

    async def _find(
        self, agent: str, words: Sequence[str], *, every: bool, limit: int
    ) -> list[Remembered]:
        await self._refresh(agent)
        found = await self._store.search(agent, words, every=every, limit=limit)
        days = {day: await self._read(agent, day) for day in dict.fromkeys(day for day, _ in found)}
        return [entry for day, wanted in found for entry in days[day] if entry.id == wanted]

    async def _refresh(self, agent: str) -> None:
        """Let the search know every daily log as it is now."""
        files = await asyncio.to_thread(self._files.days, agent)
        known = await self._store.versions(agent)
        for day in files.keys() | known.keys():
            version = files.get(day, "")
            if known.get(day) == version:
                continue
            entries = await self._read(agent, day) if version else ()
            pairs = [(entry.id, entry.text) for entry in entries]
            await persist(self._clock, self._store.index, agent, day, version, pairs)

    async def _read(self, agent: str, day: str) -> tuple[Remembered, ...]:
        return parse_log(day, await asyncio.to_thread(self._files.log, agent, day))

    async def _change(self, agent: str, day: str, change: Callable[[str], str]) -> None:
        await asyncio.to_thread(self._files.change_log, agent, day, change)


def worth_keeping(answer: str) -> str:
    """Read what an agent wants to remember from its answer; empty if nothing."""
    lines = [found[1] for line in answer.splitlines() if (found := _LINE.fullmatch(line.strip()))]
    return "\n".join(f"- {line}" for line in lines)[:NOTE_CHARACTERS].strip()


def note_request(name: str, text: str) -> AskRequest:
    """Build the ask whether an agent may keep a note."""
    options = (
        AskOption(TAKE, wording.KEEP, "allow_once"),
        AskOption(LEAVE, wording.FORGET, "reject_once"),
    )
    return AskRequest(
        "memory", wording.TITLE.format(agent=name), options, kind="memory", subject=text
    )
