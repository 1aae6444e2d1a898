"""Orders the updates of one turn, joins them into rows and shows progress in the place.

One row per joined piece of text or state of a tool call: a row ends when the kind changes, after a
second, or at 64 KiB. Nothing leaves before the vault has checked it, also across two rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

from app.core.base import Base
from app.core.feed import Feed, Unfinished
from app.core.inner_words import InnerWords, run_aside
from app.model import wording
from app.model.asks import NOT_ASKED, Decided
from app.model.calls import limit_size, merge_tool
from app.model.posts import Outcome, PostContent, ToolLine
from app.model.types import Entry, TurnRef
from app.model.updates import (
    BridgeUpdate,
    NoticeUpdate,
    PlanStep,
    PlanUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UnknownUpdate,
    UsageUpdate,
)
from app.retry import persist
from app.tasks import Tasks
from app.vault import GrowingText

ROW_SECONDS = 1.0
ROW_CHARACTERS = 64 * 1024
SHOW_SECONDS = 0.1
"""How often a follower sees unfinished text: smooth to read, a tenth of the work."""
ANSWER_CHARACTERS = 400_000
"""What a post keeps of an answer; more than any platform shows, and the transcript has it all."""
LOOKED_AT = 4
"""How many times what is shown of a text is searched for secrets that begin in it."""
PLAN_STEPS = 100
STEP_CHARACTERS = 500
"""Size of a plan that people can still read."""
THOUGHT_CHARACTERS = 1_000
"""What a post shows of a thought: its end, where the conclusion is."""
OUTPUT_CHARACTERS = 500
"""What a post shows of a tool's output: enough to see whether it worked."""

TOOLS_SHOWN = 20
"""Tool calls a post names; older ones are in the transcript."""


class UpdateRouter:
    """What one turn has said and done so far."""

    def __init__(
        self,
        base: Base,
        ref: TurnRef,
        *,
        feed: Feed,
        on_progress: Callable[[], None],
        frame: PostContent | None = None,
    ) -> None:
        """Begin empty; `frame` is the constant part of the turn's post."""
        self._ref = ref
        self._frame = frame or PostContent(kind="turn")
        self._base = base
        self._transcript = base.stores.transcript
        self._feed = feed
        self._on_progress = on_progress
        self._tasks = Tasks(f"updates of turn {ref.turn}")
        self._order = asyncio.Lock()
        self._pieces: list[str] = []
        self._kind: Literal["text", "thought"] = "text"
        self._inner = InnerWords(base.vault, ref)
        self._size = 0
        self._since = 0.0
        self._text = GrowingText(base.vault)
        self._tools: dict[str, ToolUpdate] = {}
        self._changed_tools: set[str] = set()
        self._decided: dict[str, Decided] = {}
        self._timer: asyncio.Task[None] | None = None
        self._answer: list[str] = []
        self._answered = 0
        self._narrated = 0
        """Where the last words begin in the answer."""
        self._has_acted = False
        """Whether a tool call began since words were last said."""
        self._calls = 0
        self._plan: tuple[PlanStep, ...] = ()
        self._thought = ""
        self._usage: UsageUpdate | None = None
        self.title: str | None = None
        self.subagents: set[str] = set()
        """The keys of sub-agents, whose work is theirs and no part of the post."""

    async def take(self, update: BridgeUpdate) -> None:
        """Take the next update; waits only for the store."""
        if type(update) is TextUpdate:
            if self._kind != "text" or self._changed_tools:
                await self._turn_to("text")
        elif type(update) is ThoughtUpdate and update.parent is None:
            if self._kind != "thought" or self._changed_tools:
                await self._turn_to("thought")
        elif type(update) is ThoughtUpdate:
            await self._take_inner(update.text, update.parent or "")
            return
        else:
            await self._take_other(update)
            return
        for start in range(0, len(update.text), ROW_CHARACTERS):
            piece = update.text[start : start + ROW_CHARACTERS]
            if not self._pieces:
                self._start_timer()
            self._pieces.append(piece)
            self._size += len(piece)
            if self._size >= ROW_CHARACTERS or self._age() >= ROW_SECONDS:
                await self.flush()

    async def _take_inner(self, text: str, speaker: str) -> None:
        """Take what a sub-agent says; rows of its own calls come before and after it."""
        if any(self._tools[call].parent == speaker for call in self._changed_tools):
            await self.flush()
        if not self._inner.size:
            self._start_timer()
        self._inner.add(speaker, text)
        if self._inner.size >= ROW_CHARACTERS:
            await self.flush()

    def tool(self, call: str) -> ToolUpdate | None:
        """Return what is known of a tool call."""
        return self._tools.get(call)

    @property
    def running_commands(self) -> list[str]:
        """The titles of the commands that run, without secrets."""
        tools = [each for each in self._tools.values() if each.kind == "execute"]
        running = [each.title or "" for each in tools if each.status == "in_progress"]
        return [self._base.vault.redact(title) for title in running if title]

    def is_decided(self, call: str) -> bool:
        """Tell whether a person or a rule has decided on a tool call."""
        return call in self._decided

    @property
    def words(self) -> str:
        """What the agent has said, unless it also did something."""
        return "" if self._tools else "".join((*self._answer, self._text.waiting, *self._pieces))

    async def decide(self, tool: ToolUpdate, decided: Decided) -> None:
        """Record who or what decided on a tool call."""
        self._decided[tool.call] = decided
        await self._take_tool(tool if tool.call not in self._tools else ToolUpdate(tool.call))

    async def close(self) -> None:
        """Write all that is left."""
        async with self._order:  # rows that wait for the store are nowhere else
            await self._tasks.close()
        self._timer = None
        await self.flush(final=True, closing=True)

    async def flush(self, *, final: bool = False, closing: bool = False) -> None:
        """Write the collected updates as rows, and show progress."""
        async with self._order:
            text = await self._text_entry(final=final)
            inner = await self._inner.take(final=closing)
            entries = [*text, *inner, *await self._tool_entries()]
            if not entries:
                return
            await persist(self._base.clock, self._transcript.append, entries)
        self._feed.notify(self._ref.session)
        self._on_progress()

    def content(self, state: str) -> PostContent:
        """Say what the turn's post shows now.

        The pieces were checked one by one; together they may still hold a secret that a tool call
        or a thought had cut in two.
        """
        whole = "".join(self._answer)
        text, _ = self._base.vault.hold_back(whole, final=state != "working")
        narrated = self._narrated
        if not whole.startswith(text):
            narrated = len(self._base.vault.redact(whole[:narrated]))
        if self._answered > ANSWER_CHARACTERS:
            left = self._answered - ANSWER_CHARACTERS
            text += f"\n\n{wording.CUT_ANSWER.format(left=left)}"
        return replace(
            self._frame,
            state=state,
            text=text,
            plan=self._plan,
            tools=tuple(map(self._line, self._shown_tools()[-TOOLS_SHOWN:])),
            thought=self._base.vault.redact(self._thought),
            narrated=min(narrated, len(text)),
        )

    def outcome(self) -> Outcome:
        """Count what the turn did so far."""
        people = [
            str(each.get("who") or "")
            for each in self._decided.values()
            if each.get("how") == "person" and each.get("allowed")
        ]
        usage = self._usage or UsageUpdate()
        return Outcome(
            calls=self._calls,
            approvers=tuple(map(self._base.vault.redact, people)),
            cost=usage.cost or 0.0,
            currency=usage.currency or "",
            estimated=usage.estimated,
        )

    def _shown_tools(self) -> list[ToolUpdate]:
        """List the calls that a post shows: a sub-agent has one line for all of its own."""
        return [each for each in self._tools.values() if each.parent not in self.subagents]

    def _line(self, tool: ToolUpdate) -> ToolLine:
        redact = self._base.vault.redact
        return ToolLine(
            call=redact(tool.call),
            title=redact(tool.title or tool.kind or tool.call),
            status=tool.status or "pending",
            kind=tool.kind or "",
            output=self._redact_beginning(tool.output or "", OUTPUT_CHARACTERS),
        )

    def _redact_beginning(self, text: str, limit: int) -> str:
        """Redact the beginning of a text, which may be long; no secret is cut in two."""
        looked_at = LOOKED_AT * limit
        if len(text) <= looked_at:
            return self._base.vault.redact(text)[:limit]
        return self._base.vault.hold_back(text[:looked_at])[0][:limit]

    async def _turn_to(self, kind: Literal["text", "thought"]) -> None:
        """End the row of one kind before the next begins."""
        await self.flush(final=self._kind != kind)
        self._kind = kind

    async def _take_other(self, update: BridgeUpdate) -> None:
        match update:
            case ToolUpdate():
                await self._take_tool(update)
            case PlanUpdate():
                self._plan = tuple(
                    replace(step, text=self._redact_beginning(step.text, STEP_CHARACTERS))
                    for step in update.steps[:PLAN_STEPS]
                )
                steps = [asdict(step) for step in self._plan]
                await self._write(Entry(kind="plan", data={"steps": steps}))
            case UsageUpdate():
                self._usage = update
                await self._write(Entry(kind="usage", data=asdict(update)))
            case StateUpdate(what="title"):
                self.title = self._base.vault.redact(str(update.value))
            case StateUpdate():
                data = {"state": update.what, "value": limit_size(update.value)}
                await self._write(Entry(kind="notice", data=data))
            case NoticeUpdate():
                await self._write(Entry(kind="notice", text=self._base.vault.redact(update.text)))
            case UnknownUpdate():
                data = {"unknown": update.kind, "raw": limit_size(dict(update.raw))}
                await self._write(Entry(kind="notice", data=data))

    async def _take_tool(self, update: ToolUpdate) -> None:
        is_new = update.call not in self._tools
        if self._pieces or (is_new and self._text.waiting):
            await self.flush(final=True)
        elif self._inner.has_words_of(update.parent):
            await self.flush()
        if is_new:
            self._calls += 1
            self._has_acted = True
        known = self._tools.pop(update.call, None)
        self._tools[update.call] = merged = merge_tool(known, update)
        if len(self._tools) > TOOLS_SHOWN * 2:
            oldest = next(iter(self._tools))
            if oldest not in self._changed_tools:
                del self._tools[oldest]
        if not self._changed_tools:
            self._start_timer()
        self._changed_tools.add(update.call)
        moved = known is None or known.status != merged.status
        full = len(self._changed_tools) >= TOOLS_SHOWN
        if full or (moved and self._age() >= ROW_SECONDS):
            await self.flush()

    async def _write(self, entry: Entry) -> None:
        """Write one row of a rare kind, after everything that came before it."""
        await self.flush(final=True)
        redact = partial(self._base.vault.redact_json, entry.data)
        clean = await run_aside(redact, _measure(entry.data))
        row = replace(entry, data=clean, session=self._ref.session, turn=self._ref.turn)
        async with self._order:
            await persist(self._base.clock, self._transcript.append, [row])
        self._feed.notify(self._ref.session)
        self._on_progress()

    async def _text_entry(self, *, final: bool) -> list[Entry]:
        """Take the joined text, except a tail that might be the beginning of a secret."""
        if not self._pieces and not (final and self._text.waiting):
            return []
        taken, joined = len(self._pieces), "".join(self._pieces)
        split = partial(self._text.split, joined, final=final)
        safe, waiting = await run_aside(split, len(joined))
        self._text.take(safe, waiting, final=final)
        # Others may have come meanwhile.
        del self._pieces[:taken]
        self._size -= len(joined)
        if not safe:
            return []
        if self._kind == "text":
            if self._has_acted and self._answer:
                # The first words after a tool call begin a paragraph.
                if not (self._answer[-1].endswith("\n") or safe.startswith("\n")):
                    self._answer.append("\n\n")
                    self._answered += 2
                lead = len(safe) - len(safe.lstrip("\n"))
                self._narrated = min(self._answered + lead, ANSWER_CHARACTERS)
            self._has_acted = False
            room = max(0, ANSWER_CHARACTERS - self._answered)
            self._answer.append(safe[:room])
            self._answered += len(safe)
        else:
            self._thought = (self._thought + safe)[-THOUGHT_CHARACTERS:]
        return [Entry(self._kind, safe, "", {}, self._ref.session, self._ref.turn)]

    async def _tool_entries(self) -> list[Entry]:
        changed = [tool for call, tool in self._tools.items() if call in self._changed_tools]
        rows = []
        for tool in changed:
            # Of a finished call it is also said that no one was asked.
            is_over = tool.status in {"completed", "failed"}
            decided = self._decided.get(tool.call, NOT_ASKED if is_over else None)
            rows.append(asdict(tool) | ({} if decided is None else {"decided": decided}))
        self._changed_tools.clear()
        try:
            rows = await run_aside(partial(self._base.vault.redact_json, rows), _measure(rows))
        except BaseException:
            self._changed_tools.update(tool.call for tool in changed)
            raise
        return [
            Entry("tool", row["title"] or "", "", row, self._ref.session, self._ref.turn)
            for row in rows
        ]

    def _age(self) -> float:
        """Return how long ago what is not written yet began, in seconds."""
        return self._base.clock.monotonic() - self._since

    def _start_timer(self) -> None:
        self._since = self._base.clock.monotonic()
        if self._timer is None or self._timer.done():
            self._timer = self._tasks.start(self._tick(), name="timer")

    async def _tick(self) -> None:
        """Flush regularly, so that nothing waits longer than a row may."""
        while self._pieces or self._changed_tools or self._inner.size:
            due = ROW_SECONDS - self._age()
            if due <= 0:
                await self.flush()
            elif self._feed.followed(self._ref.session):
                # What is being checked is shown as a row.
                if not self._order.locked():
                    safe, _waiting = self._text.split("".join(self._pieces))
                    if safe:
                        ref = self._ref
                        self._feed.show(Unfinished(ref.session, ref.turn, self._kind, safe))
                await self._base.clock.sleep(min(due, SHOW_SECONDS))
            else:
                await self._base.clock.sleep(due)


def _measure(value: Any) -> int:
    """Count the characters of the texts in a JSON value."""
    match value:
        case str():
            return len(value)
        case dict():
            return sum(len(str(key)) + _measure(item) for key, item in value.items())
        case list() | tuple():
            return sum(map(_measure, value))
        case _:
            return 0
