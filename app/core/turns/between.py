"""Receives what an agent reports between its turns: a new title, and how its sub-agents do."""

from __future__ import annotations

from collections.abc import Callable

from app.core.base import Base
from app.model.subagents import SubagentUpdate
from app.model.types import Session
from app.model.updates import AskRequest, BridgeUpdate, StateUpdate
from app.retry import persist


class BetweenTurns:
    """What one session's agent reports between turns."""

    def __init__(self, base: Base, session: Session, on_change: Callable[[int], None]) -> None:
        """Listen; `on_change` is told when its sub-agents changed."""
        self._base = base
        self._session = session
        self._on_change = on_change

    async def on_update(self, update: BridgeUpdate) -> None:
        """Keep a new title, and what changed about a sub-agent; the rest belongs to turns."""
        base, stores, session = self._base, self._base.stores, self._session.id
        if isinstance(update, StateUpdate) and update.what == "title" and update.value:
            await stores.sessions.rename(session, base.vault.redact(str(update.value)))
        elif isinstance(update, SubagentUpdate):
            await persist(base.clock, stores.subagents.change, session, None, update)
            self._on_change(session)

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: no turn runs that could need it."""
        return None
