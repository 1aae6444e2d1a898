"""Handles what an agent does between its turns: what it begins, reports late, and leaves running.

What it begins becomes a turn of its own, which the engine opens. Late updates of a call go to the
turn that began it, where the page shows them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from app.core.base import Base
from app.model.background import Woken, Work
from app.model.calls import merge_tool
from app.model.subagents import SubagentUpdate
from app.model.types import Entry, Session
from app.model.updates import AskRequest, BridgeUpdate, StateUpdate, ThoughtUpdate, ToolUpdate
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

STORE_SECONDS: Final = 1.0
"""How often counts are stored: an agent may send thousands of updates a second."""
_TOOL_FIELDS: Final = frozenset(each.name for each in fields(ToolUpdate))


class BetweenTurns:
    """What one session's agent does between turns; implements `SessionListener`."""

    def __init__(
        self,
        base: Base,
        session: Session,
        tasks: Tasks,
        *,
        wake: Callable[[int, Woken], None],
        on_change: Callable[[int], None],
        on_work: Callable[[int, tuple[Work, ...]], None],
    ) -> None:
        """Listen; `wake` has a turn opened for what the agent begins.

        `on_change` is told when its sub-agents changed, `on_work` what it has running.
        """
        self._base = base
        self._session = session
        self._tasks = tasks
        self._wake = wake
        self._on_change = on_change
        self._on_work = on_work
        self._unshown: Counter[str] = Counter()

    async def on_update(self, update: BridgeUpdate) -> None:
        """Keep a new title, and what changed about a sub-agent; the rest belongs to turns."""
        base, stores, session = self._base, self._base.stores, self._session.id
        if isinstance(update, StateUpdate) and update.what == "title" and update.value:
            await stores.sessions.rename(session, base.vault.redact(str(update.value)))
        elif isinstance(update, SubagentUpdate):
            await persist(base.clock, stores.subagents.change, session, None, update)
            self._on_change(session)

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: asks of the agent wait for a turn."""
        return None

    def on_woken(self, woken: Woken) -> None:
        """Have a turn opened for what the agent began."""
        self._wake(self._session.id, woken)

    async def on_late(self, turn: int, update: BridgeUpdate) -> None:
        """Write what comes late for a call into the turn that began the call."""
        if isinstance(update, ToolUpdate):
            await self._write_call(turn, update)
        elif isinstance(update, ThoughtUpdate):
            text = self._base.vault.redact(update.text)
            await self._append(Entry("thought", text, data={"parent": update.parent}), turn)

    def on_unshown(self, what: str) -> None:
        """Count something that no one can be shown."""
        if not self._unshown:
            self._tasks.start(self._store_counts(), name="unshown")
        self._unshown[what] += 1

    def on_work(self, work: tuple[Work, ...]) -> None:
        """Pass on what goes on without a turn."""
        self._on_work(self._session.id, work)

    async def _write_call(self, turn: int, update: ToolUpdate) -> None:
        rows = await self._base.stores.transcript.of_turn(self._session.id, turn)
        known = [row.data for row in rows if row.kind == "tool" and row.data["call"] == update.call]
        facts: Mapping[str, Any] = known[-1] if known else {"call": update.call}
        before = ToolUpdate(**{name: facts[name] for name in facts.keys() & _TOOL_FIELDS})
        merged = asdict(merge_tool(before, update))
        # Kept as they were stored: rows hold them as plain values.
        kept = {name: facts[name] for name in ("decided",) if name in facts}
        data = self._base.vault.redact_json({**merged, **kept, "late": True})
        await self._append(Entry("tool", data["title"] or "", data=data), turn)

    async def _append(self, entry: Entry, turn: int) -> None:
        base = self._base
        row = Entry(entry.kind, entry.text, "", entry.data, self._session.id, turn)
        await persist(base.clock, base.stores.transcript.append, [row])

    async def _store_counts(self) -> None:
        await self._base.clock.sleep(STORE_SECONDS)
        counts, self._unshown = self._unshown, Counter()
        sessions = self._base.stores.sessions
        await persist(self._base.clock, sessions.count_unshown, self._session.id, counts)
