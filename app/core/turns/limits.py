"""Limits what turns take: slots, working time, and money.

An estimate never counts towards a budget: only what the agent itself reports does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.agents.agent import Agent
from app.clock import Clock, machine_zone
from app.config import Configuration
from app.core.base import Base
from app.model import wording
from app.model.asks import PAUSE_OPTIONS
from app.model.types import Session
from app.model.updates import AskRequest, PromptEnd, Tokens, UsageUpdate
from app.retry import persist
from app.store.spending import Share

SHARES: tuple[Share, ...] = ("person", "place", "agent", "day")
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
Estimate = Callable[[str, Tokens], float | None]
"""Estimates what tokens of a model cost, in dollars; None if that is not known."""


class Slots:
    """The slots that turns run in."""

    def __init__(self, count: int, *, agents: Mapping[str, Agent] | None = None) -> None:
        """Have `count` slots; fewer for agents that have a limit of their own."""
        self.count = count
        self.used = 0
        self.lent: Counter[str] = Counter()
        """How many turns wait without their slot, by agent."""
        self.on_room: Callable[[], None] = lambda: None
        """Is told when a turn begins to wait without its slot."""
        self._free = asyncio.Semaphore(count)
        self._agents: Mapping[str, Agent] = agents or {}
        self._own: dict[tuple[str, int], asyncio.Semaphore] = {}

    @asynccontextmanager
    async def one(self, agent: str = "") -> AsyncIterator[Slot]:
        """Wait for a slot and hold it; the agent's limit first, so that others need not wait."""
        found = self._agents.get(agent)
        fewer = found.max_turns if found else None
        slot = Slot(self, agent, self._free)
        if fewer is not None:
            own = self._own.setdefault((agent, fewer), asyncio.Semaphore(fewer))
            slot = Slot(self, agent, own, self._free)
        await slot.take()
        try:
            yield slot
        finally:
            slot.close()


class Slot:
    """One turn's slot, given back while the turn waits for people."""

    def __init__(self, slots: Slots, agent: str, *free: asyncio.Semaphore) -> None:
        self._slots = slots
        self._agent = agent
        self._free = free
        self._held = False
        self._lent = False
        self._waiting = 0
        self._taking = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a free slot; two waiters of the same turn take it once."""
        async with self._taking:
            if not self._held:
                await self._acquire()
                self._held = True
                self._slots.used += 1
                self._note(lent=False)

    def leave(self) -> None:
        """Give the slot back, if it is held."""
        if self._held:
            self._held = False
            self._slots.used -= 1
            self._release(len(self._free))

    def close(self) -> None:
        """Give the slot back for good."""
        self.leave()
        self._note(lent=False)

    def _note(self, *, lent: bool) -> None:
        if lent != self._lent:
            self._lent = lent
            self._slots.lent[self._agent] += 1 if lent else -1
            self._slots.on_room()

    async def _acquire(self) -> None:
        taken = 0
        try:
            for free in self._free:
                await free.acquire()
                taken += 1
        except BaseException:
            self._release(taken)
            raise

    def _release(self, taken: int) -> None:
        for free in self._free[:taken]:
            free.release()

    def lay_down(self) -> None:
        """Give the slot back for a wait."""
        self._waiting += 1
        self.leave()
        self._note(lent=True)

    async def pick_up(self) -> None:
        """Take the slot again after a wait, unless the turn waits for something else as well."""
        self._waiting -= 1
        if not self._waiting:
            await self.take()
        if self._waiting:
            self._note(lent=True)
            self.leave()  # another wait began while this one waited for the slot

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Give the slot back while waiting; a turn that ends meanwhile does not retake it."""
        self.lay_down()
        try:
            yield
        except BaseException:
            self._waiting -= 1
            raise
        await self.pick_up()


class WorkTimer:
    """Measures the time of one turn."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asks = 0
        self._others = 0
        self._paused = 0.0
        self._waited = 0.0
        self._active = 0.0
        self._at_work = asyncio.Event()
        self._at_work.set()
        self._asking = asyncio.Event()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count the time in which at least one ask is open."""
        self._pause()
        self._asks += 1
        self._active = self._clock.monotonic()
        self._asking.set()
        try:
            yield
        finally:
            self._asks -= 1
            self._active = self._clock.monotonic()
            if not self._asks:
                self._asking.clear()
            self._resume()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave out the time in which the turn waits for other agents."""
        self._pause()
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1
            self._active = self._clock.monotonic()
            self._resume()

    def _pause(self) -> None:
        if not self._asks + self._others:
            self._paused = self._clock.monotonic()
            self._at_work.clear()

    def _resume(self) -> None:
        if not self._asks + self._others:
            self._waited += self._clock.monotonic() - self._paused
            self._at_work.set()

    @property
    def is_asking(self) -> bool:
        """Whether at least one ask is open."""
        return self._asks > 0

    def stir(self) -> None:
        """Note that the agent is active although an ask is open."""
        if self._asks:
            self._active = self._clock.monotonic()

    async def wait_until_worked(self, seconds: float) -> None:
        """Wait until the agent has worked this long; the time people take to answer is left out."""
        clock = self._clock
        began = clock.monotonic()
        while (left := seconds + self._waited - (clock.monotonic() - began)) > 0:
            await clock.sleep(left)
            await self._at_work.wait()

    async def wait_until_idle(self, seconds: float) -> None:
        """Wait until an ask has been open this long and nothing else has happened."""
        while True:
            await self._asking.wait()
            idle = 0.0 if self._others else self._clock.monotonic() - self._active
            left = seconds - idle
            if left <= 0:
                return
            await self._clock.sleep(left)


@dataclass(frozen=True, slots=True)
class DailyLimits:
    """How many dollars a day may cost; a day begins at midnight in the bridge's time zone."""

    usd: Mapping[Share, float]
    """The limits that are set."""
    zone: ZoneInfo

    @classmethod
    def of(cls, configuration: Configuration) -> DailyLimits:
        """Return the limits that the operator set."""
        settings = configuration.settings
        set_to: dict[Share, float | None] = {
            "person": settings.budget_person_usd,
            "place": settings.budget_place_usd,
            "agent": settings.budget_agent_usd,
            "day": settings.budget_day_usd,
        }
        usd = {share: value for share, value in set_to.items() if value is not None}
        zone = settings.time_zone or machine_zone(configuration.surroundings)
        return cls(usd, ZoneInfo(zone))

    def day_of(self, now: float) -> str:
        """Name the day of a moment."""
        return datetime.fromtimestamp(now, self.zone).date().isoformat()

    def find_end(self, now: float) -> float:
        """Return when the day of a moment ends."""
        tomorrow = datetime.fromtimestamp(now, self.zone).date() + timedelta(days=1)
        return datetime.combine(tomorrow, time(), self.zone).timestamp()

    def find_exceeded(self, spent: Mapping[Share, float]) -> Share | None:
        """Return the first limit that is reached."""
        limited = (each for each in SHARES if each in self.usd)
        return next((each for each in limited if spent.get(each, 0.0) >= self.usd[each]), None)


NO_LIMITS = DailyLimits({}, ZoneInfo("UTC"))


class Budget:
    """What one session may cost, while one of its turns runs."""

    def __init__(
        self,
        base: Base,
        daily: DailyLimits,
        session: Session,
        turn: int,
    ) -> None:
        self._base = base
        self._turn = turn
        self._daily = daily
        self._of_day: Mapping[Share, float] = {}
        self._name = base.name_of(session.key.agent)
        self._usd = base.agent(session.key.agent).budget_usd
        """Dollars since a person last said go on; None: no limit."""
        self._session = session
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
            day = self._daily.day_of(self._base.clock.now())
            self._of_day = await self._base.stores.spending.of_turn(self._turn, day)

    async def take(self, usage: UsageUpdate) -> str:
        """Record the cost that the agent reports; returns a warning for the place, if any."""
        if usage.cost is None or usage.currency not in {None, "USD"}:
            return ""
        before, self._spent = await persist(
            self._base.clock,
            self._base.stores.sessions.spend,
            self._session.id,
            usage.cost,
            turn=self._turn,
            day=self._daily.day_of(self._base.clock.now()),
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
            now = self._base.clock.now()
            until = self._daily.find_end(now)
            spent, budget = self._of_day[share], self._daily.usd[share]
            told = wording.DAY_SPENT[share].format(agent=self._name, spent=spent, budget=budget)
            words = f"{told} {wording.limit_reset(until, now, resumes=resumes)}"
            return AskRequest("day", words, PAUSE_OPTIONS, kind="pause", until=until)
        words = wording.BUDGET_SPENT.format(
            agent=self._name, spent=self._spent, budget=self._usd or 0.0
        )
        return AskRequest("budget", words, PAUSE_OPTIONS, kind="pause")


def complete(
    usage: UsageUpdate, *, has_cost: bool, model: str, estimate: Estimate
) -> UsageUpdate | None:
    """Complete the last report of a turn; None if it says nothing new."""
    if not has_cost and usage.cost is None and usage.tokens is not None:
        cost = estimate(model, usage.tokens)
        if cost is not None:
            return replace(usage, cost=cost, currency="USD", estimated=True)
    return usage if usage.used is not None else None
