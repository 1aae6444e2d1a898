"""Checks what a session costs against its budget, and asks people before it costs more."""

from __future__ import annotations

from app.core import wording
from app.core.consent.offers import PAUSE_OPTIONS
from app.core.ports import Clock
from app.core.retry import persist
from app.core.stores.sessions import SessionStore
from app.core.types import Session
from app.core.updates import AskRequest, PromptEnd, UsageUpdate

WARNING = 0.8
"""The part of a budget after which the place is told: early enough to act on it."""
GRACE_SECONDS = 2.0
"""Most agents report their cost just before they end; they may finish."""


class Budget:
    """What one session may cost, while one of its turns runs."""

    def __init__(
        self,
        usd: float | None,
        session: Session,
        sessions: SessionStore,
        clock: Clock,
        *,
        name: str = "",
    ) -> None:
        """Allow this many dollars since a person last said go on; None: no limit.

        `name` is what people call the agent.
        """
        self._name = name or session.key.agent
        self._usd = usd
        self._session = session
        self._sessions = sessions
        self._clock = clock
        self._spent = session.spent

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of it."""
        return self._usd is not None and self._spent >= self._usd

    async def take(self, usage: UsageUpdate) -> str:
        """Record the cost that the agent reports; returns a warning for the place, if any."""
        if self._usd is None or usage.cost is None or usage.currency not in {None, "USD"}:
            return ""
        before, self._spent = await persist(
            self._clock, self._sessions.spend, self._session.id, usage.cost
        )
        if before < WARNING * self._usd <= self._spent < self._usd:
            return wording.BUDGET_LOW.format(spent=self._spent, budget=self._usd)
        return ""

    def has_ended(self, end: PromptEnd) -> bool:
        """Tell whether the budget ended a prompt; one that ended by itself is done."""
        return self.is_spent and end.stop_reason == "cancelled"

    def pause(self) -> AskRequest:
        """Ask whether a turn that has used it up should go on."""
        words = wording.BUDGET_SPENT.format(
            agent=self._name, spent=self._spent, budget=self._usd or 0.0
        )
        return AskRequest("budget", words, PAUSE_OPTIONS, kind="pause")
