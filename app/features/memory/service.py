"""Keeps what agents remember: asks them after a turn, writes daily logs, and finds notes again.

Memory never crosses agents: every call names one agent and touches its files alone. A note is a row
before it is a line of a file, so that a crash neither loses nor doubles it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

from typing_extensions import override

from app.agents.files import log_of
from app.core.hooks import PromptParts, Wait
from app.core.runtime import Runtime
from app.core.turns.prompt import brings_words, holds_words_of_others
from app.errors import BridgeError, NotFound
from app.features.memory import wording
from app.features.memory.model import NOTE_CHARACTERS, Remembered, add_entry, drop_entry, parse_log
from app.features.memory.store import MemoryStore
from app.features.part import Part
from app.model.asks import LEAVE, TAKE
from app.model.delegation import SERVICE
from app.model.ports import AgentSession
from app.model.types import Entry, Message, Session, Turn, TurnRef
from app.model.updates import AskOption, AskRequest, BridgeUpdate, TextUpdate, ToolUpdate
from app.retry import persist
from app.signals import Topic
from app.store.upkeep import DAY_SECONDS
from app.tasks import Tasks

logger = logging.getLogger(__name__)

RECALLED: Final = 5
RECALLED_CHARACTERS: Final = 2_000
"""What the first prompt of a conversation brings of it."""
LISTED: Final = 200
REFLECTION_SECONDS: Final = 60.0
"""How long an agent may think about what to keep: its answer is a few lines."""
_ANSWER_CHARACTERS: Final = 4 * NOTE_CHARACTERS
_WORD = re.compile(r"\w{4,}")
"""Shorter words are in every text."""
_QUERY_WORDS: Final = 30
_LINE = re.compile(r"[-*•]\s+(.*\S)")


class Memory(Part):
    """The memory of all agents, each for itself."""

    ask_kind = "memory"
    own_word_tools = ("memory_read", "memory_search", "memory_write")

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._store = runtime.stores.open(MemoryStore)
        self._files = runtime.files
        self._clock = runtime.clock
        self._signals = runtime.signals
        self._writing = asyncio.Lock()
        self._tasks = Tasks("memory")
        self._signals.on(Topic.NOTES, lambda _facts: self.start())

    @override
    def start(self) -> None:
        """Write what people let agents keep, in the background; only the leader writes."""
        if self._signals.is_leader:
            self._tasks.start(self.write(), name="notes")

    @override
    def on_answered(self) -> None:
        self.start()

    @override
    async def finish(self) -> None:
        """Stop writing; what is not in its file yet is written at the next start."""
        await self._tasks.close()

    @override
    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Bring what the agent noted in other conversations about what is said now."""
        if not begins or self.mode(session.key.agent) == "off":
            return PromptParts()
        words = " ".join((session.title, *(message.text for message in messages)))
        found = await self.recall(session.key.agent, words)
        redact = self.runtime.vault.redact
        text = "\n".join(wording.quote(each, redact(each.text)) for each in found)
        return PromptParts(own=((wording.NOTES, text),) if found else ())

    @override
    async def after_turn(
        self, session: Session, turn: Turn, agent: AgentSession, hurried: Wait
    ) -> None:
        """Ask the agent what is worth keeping, then keep what it says, or ask people about it."""
        if self.mode(session.key.agent) == "off":
            return
        reflection = Reflection()
        try:
            too_long = partial(self._clock.sleep, REFLECTION_SECONDS)
            answer = await reflection.ask(agent, turn, until=(hurried, too_long))
            text = self.runtime.vault.redact(worth_keeping(answer))
            if not text:
                return
            ref = TurnRef(session.id, turn.id)
            if not reflection.has_read and await self.may_keep(session):
                await self.keep(session.key.agent, ref, text)
            else:
                await self.propose(session.key.agent, ref, text)
        except BridgeError as error:
            logger.info("nothing is remembered of turn %d: %s", turn.id, error)

    @override
    async def expire(self) -> None:
        """Delete the daily logs of long ago, and what the search knows of them."""
        days = self.runtime.configuration.settings.retention_memory_days
        if days is None:
            return
        first = datetime.fromtimestamp(self._clock.now() - days * DAY_SECONDS, UTC).date()
        for agent in self.runtime.configuration.agents:
            for day in await asyncio.to_thread(self._files.erase_logs, agent, first):
                await persist(self._clock, self._store.index, agent, day, "", ())

    @override
    async def forget_agent(self, agent: str) -> None:
        """Forget what waits and what the search knows of an agent that was removed."""
        await persist(self._clock, self._store.forget, agent)

    def mode(self, agent: str) -> str:
        """Tell whether an agent remembers, and who decides on its notes."""
        found = self.runtime.agents.get(agent)
        return "off" if found is None else found.memory

    async def may_keep(self, session: Session) -> bool:
        """Tell whether an agent may keep a note of a conversation without an answer of people.

        It may if it was told only words of people who may direct it, and read nothing else. What a
        fork brings from the place it was copied from is not known here, and what an agent does for
        another one may be that one's own idea.
        """
        stores = self.runtime.stores
        now = stores.sessions.session(session.id)
        if self.mode(session.key.agent) != "auto" or now is None or now.read_others:
            return False
        if session.place.service == SERVICE or stores.decisions.place(session.place).is_fork:
            return False
        turns = await stores.turns.turns(session.id)
        return not any(holds_words_of_others(each.prompt) for each in turns)

    async def propose(self, agent: str, ref: TurnRef, text: str) -> None:
        """Ask people whether an agent keeps a note."""
        runtime = self.runtime
        asked = runtime.agents[agent]
        request = runtime.ledger.present(_note_request(runtime.agents.title(agent), text))
        deadline = self._clock.now() + asked.ask_seconds
        posts = await persist(
            self._clock, self._store.propose, agent, ref, text, request, deadline=deadline
        )
        runtime.outbox.send(*posts)
        runtime.ledger.watch()
        runtime.feed.notify(ref.session)

    async def keep(self, agent: str, ref: TurnRef, text: str) -> None:
        """Keep a note that needs no answer, and tell people of it."""
        runtime = self.runtime
        await persist(self._clock, self._store.keep, agent, ref.session, text)
        if self._signals.is_leader:
            await self.write()
        else:
            self._signals.send(Topic.NOTES)
        words = wording.KEPT.format(agent=runtime.agents.title(agent), text=text)
        notice = Entry("notice", words, session=ref.session, turn=ref.turn)
        await persist(self._clock, runtime.stores.transcript.append, [notice])
        runtime.feed.notify(ref.session)

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
        for day in sorted(await self._days(agent), reverse=True):
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

    async def _find(
        self, agent: str, words: Sequence[str], *, every: bool, limit: int
    ) -> list[Remembered]:
        await self._refresh(agent)
        found = await self._store.search(agent, words, every=every, limit=limit)
        days = {day: await self._read(agent, day) for day in dict.fromkeys(day for day, _ in found)}
        return [entry for day, wanted in found for entry in days[day] if entry.id == wanted]

    async def _refresh(self, agent: str) -> None:
        """Let the search know every daily log as it is now."""
        files, known = await self._days(agent), await self._store.versions(agent)
        for day in files.keys() | known.keys():
            version = files.get(day, "")
            if known.get(day) == version:
                continue
            entries = await self._read(agent, day) if version else ()
            pairs = [(entry.id, entry.text) for entry in entries]
            await persist(self._clock, self._store.index, agent, day, version, pairs)

    async def _days(self, agent: str) -> Mapping[str, str]:
        """Return the version of each daily log."""
        files = await asyncio.to_thread(self._files.list_files, agent)
        return {
            file.path.removesuffix(".md").rpartition("/")[2]: f"{file.changed_at}-{file.size}"
            for file in files
            if "/" in file.path
        }

    async def _read(self, agent: str, day: str) -> tuple[Remembered, ...]:
        file = await asyncio.to_thread(self._files.read, agent, _path(day))
        return parse_log(day, "" if file is None else file.text)

    async def _change(self, agent: str, day: str, change: Callable[[str], str]) -> None:
        """Replace a daily log by what a function makes of it; an empty one is removed."""
        path = _path(day)
        changed = await asyncio.to_thread(self._files.change, agent, path, change)
        if not changed.text.strip():
            await asyncio.to_thread(self._files.delete, agent, path)


class Reflection:
    """Asks an agent what to keep of a turn; it receives the agent's updates meanwhile.

    People have their answer by then: it ends as soon as the session has something else to do.
    """

    def __init__(self) -> None:
        self._text = ""
        self.has_read = False
        """Whether the agent read something for its answer."""

    async def ask(self, agent: AgentSession, turn: Turn, *, until: Iterable[Wait]) -> str:
        """Return what the agent answers; empty if it did not come to an end in time."""

        async def end_after(wait: Wait) -> None:
            await wait()
            await agent.cancel()

        tasks = Tasks(f"memory of turn {turn.id}")
        for wait in until:
            tasks.start(end_after(wait), name="end")
        try:
            end = await agent.prompt(wording.WORTH_KEEPING, self)
        finally:
            await tasks.close()
        return "" if end.stop_reason == "cancelled" else self._text

    async def on_update(self, update: BridgeUpdate) -> None:
        """Collect the answer."""
        if type(update) is TextUpdate and len(self._text) < _ANSWER_CHARACTERS:
            self._text += update.text
        elif type(update) is ToolUpdate and brings_words(update, Memory.own_word_tools):
            self.has_read = True

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Allow nothing."""
        return None


def worth_keeping(answer: str) -> str:
    """Read what an agent wants to remember from its answer; empty if nothing."""
    lines = [found[1] for line in answer.splitlines() if (found := _LINE.fullmatch(line.strip()))]
    return "\n".join(f"- {line}" for line in lines)[:NOTE_CHARACTERS].strip()


def _note_request(name: str, text: str) -> AskRequest:
    """Build the ask whether an agent may keep a note."""
    options = (
        AskOption(TAKE, wording.KEEP, "allow_once"),
        AskOption(LEAVE, wording.FORGET, "reject_once"),
    )
    return AskRequest(
        "memory", wording.TITLE.format(agent=name), options, kind="memory", subject=text
    )


def _path(day: str) -> str:
    try:
        return log_of(date.fromisoformat(day))
    except ValueError:
        raise NotFound("day", day) from None
