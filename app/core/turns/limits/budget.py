"""Holds what a session costs against what it may cost, and asks people before it costs more."""

from __future__ import annotations

from app.core.clock import persist
from app.core.consent.offers import PAUSE_OPTIONS
from app.core.ports import Clock
from app.core.stores.sessions import SessionStore
from app.core.types import Session
from app.core.updates import AskRequest, PromptEnd, UsageUpdate

WARNING = 0.8
"""The part of a budget after which the place is told: early enough to act on it."""
GRACE_SECONDS = 2.0
"""Most agents report their cost when they are about to end; that need not be cut short."""


class Budget:
    """What one session may cost, while one of its turns runs."""

    def __init__(
        self, usd: float | None, session: Session, sessions: SessionStore, clock: Clock
    ) -> None:
        """Allow so many dollars since somebody last said go on; None: as many as it takes."""
        self._usd = usd
        self._session = session
        self._sessions = sessions
        self._clock = clock
        self._spent = session.spent

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing left of it."""
        return self._usd is not None and self._spent >= self._usd

    async def take(self, usage: UsageUpdate) -> str:
        """Note what the agent says it has cost; returns what the place should know, if anything."""
        if self._usd is None or usage.cost is None or usage.currency not in {None, "USD"}:
            return ""
        before, self._spent = await persist(
            self._clock, self._sessions.spend, self._session.id, usage.cost
        )
        if before < WARNING * self._usd <= self._spent < self._usd:
            return f"${self._spent:.2f} of the budget of ${self._usd:.2f} are spent."
        return ""

    def ended(self, end: PromptEnd) -> bool:
        """Tell whether it is what ended a prompt; one that was over by itself is done."""
        return self.is_spent and end.stop_reason == "cancelled"

    def pause(self) -> AskRequest:
        """Ask whether a turn shall go on that has used it up."""
        words = (
            f"{self._session.key.agent} has spent ${self._spent:.2f} here; "
            f"the budget of a session is ${self._usd or 0.0:.2f}. Go on with as much again?"
        )
        return AskRequest("budget", words, PAUSE_OPTIONS, kind="pause")
