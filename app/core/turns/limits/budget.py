"""Checks what a session and its day cost against their budgets, and asks before it costs more."""

from __future__ import annotations

from collections.abc import Mapping

from app.clock import Clock
from app.core.turns.limits.daily import DailyLimits
from app.model import wording
from app.model.asks import PAUSE_OPTIONS
from app.model.types import Session
from app.model.updates import AskRequest, PromptEnd, UsageUpdate
from app.retry import persist
from app.store.sessions import SessionStore
from app.store.spending import Share, SpendingStore

WARNING = 0.8
"""The part of a budget after which the place is told: early enough to act on it."""
TURN_USD = 50.0
"""What one turn can cost: hours of the dearest model. A report of more is not believed: it counts
up to this, for the session and the agent that claim it, and not for what others may spend."""
OVERSHOOT = 2.0
"""How often a turn may cost what its agent may spend a day and still count in full for others: an
honest one is over by its last steps, a lie by much more."""
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
        turn: int,
        daily: DailyLimits,
        spending: SpendingStore,
        name: str = "",
    ) -> None:
        """Allow this many dollars since a person last said go on; None: no limit.

        `name` is what people call the agent.
        """
        self._turn = turn
        self._daily = daily
        self._spending = spending
        self._of_day: Mapping[Share, float] = {}
        self._name = name or session.key.agent
        self._usd = usd
        self._session = session
        self._sessions = sessions
        self._clock = clock
        self._spent = session.spent
        self._left = TURN_USD
        self._shared = min(TURN_USD, OVERSHOOT * daily.usd.get("agent", TURN_USD))

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of it, or of what the day may cost."""
        is_over = self._usd is not None and self._spent >= self._usd
        return is_over or self._daily.find_exceeded(self._of_day) is not None

    async def look(self) -> None:
        """Read what those whom the turn counts for have spent today."""
        if self._daily.usd:
            day = self._daily.day_of(self._clock.now())
            self._of_day = await self._spending.of_turn(self._turn, day)

    async def take(self, usage: UsageUpdate) -> str:
        """Record the cost that the agent reports; returns a warning for the place, if any."""
        counts = self._usd is not None or bool(self._daily.usd)
        if not counts or usage.cost is None or usage.currency not in {None, "USD"}:
            return ""
        day = self._daily.day_of(self._clock.now()) if self._daily.usd else ""
        before, self._spent = await persist(
            self._clock,
            self._sessions.spend,
            self._session.id,
            usage.cost,
            turn=self._turn,
            day=day,
            most=self._left,
            shared=self._shared,
        )
        grown = self._spent - before
        self._left = max(0.0, self._left - grown)
        self._shared = max(0.0, self._shared - grown)
        await self.look()
        if self._usd is not None and before < WARNING * self._usd <= self._spent < self._usd:
            return wording.BUDGET_LOW.format(spent=self._spent, budget=self._usd)
        return ""

    def has_ended(self, end: PromptEnd) -> bool:
        """Tell whether the budget ended a prompt; one that ended by itself is done."""
        return self.is_spent and end.stop_reason == "cancelled"

    def pause(self, *, resumes: bool) -> AskRequest:
        """Ask whether a turn that has used it up should go on; after a day it may `resume`."""
        if (share := self._daily.find_exceeded(self._of_day)) is not None:
            now = self._clock.now()
            until = self._daily.find_end(now)
            spent, budget = self._of_day[share], self._daily.usd[share]
            told = wording.DAY_SPENT[share].format(agent=self._name, spent=spent, budget=budget)
            words = f"{told} {wording.limit_reset(until, now, resumes=resumes)}"
            return AskRequest("day", words, PAUSE_OPTIONS, kind="pause", until=until)
        words = wording.BUDGET_SPENT.format(
            agent=self._name, spent=self._spent, budget=self._usd or 0.0
        )
        return AskRequest("budget", words, PAUSE_OPTIONS, kind="pause")
