"""Reads the inbox: one reader per adapter, one task per place, each message decided once.

A row stays in the inbox until the commit that says what became of it, so a crash repeats the
decision, never its consequences.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.core.adapters import Adapter
from app.core.base import Base
from app.core.intake.dispatch import Dispatcher, storable
from app.core.intake.outcomes import Outcome, Outcomes
from app.core.repositories.following import Proposals, Renames
from app.errors import BridgeError, DeliveryRefused, DeliveryUnreadable, StoreUnavailable
from app.model import wording
from app.model.inbound import (
    Accepted,
    Answered,
    Changed,
    Chore,
    Delivery,
    DeliveryState,
    Heard,
    News,
    Rated,
    Reason,
)
from app.model.keys import PlaceKey
from app.retry import persist
from app.signals import Facts, Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

Said = Heard | Changed | Rated | News
"""Handled per place, one after another."""

DRAIN_SECONDS = 0.05
"""How often the inbox of an agent that is being removed is looked at."""
PAUSE_SECONDS = 30.0
"""How long a pause waits for the messages before it."""
READ_AGAIN_SECONDS = 1.0
"""Pause after a failed read: short enough for people, long enough for the log."""


class Intake:
    """Turns stored deliveries into turns."""

    def __init__(
        self,
        base: Base,
        dispatcher: Dispatcher,
        *,
        proposals: Proposals | None = None,
        renames: Renames | None = None,
    ) -> None:
        self._base = base
        self._deliveries = base.stores.deliveries
        self._dispatcher = dispatcher
        self._proposals = proposals
        self._renames = renames
        self._tasks = Tasks("intake")
        self._wakes: dict[str, asyncio.Event] = {}
        self._places: dict[PlaceKey, deque[tuple[Delivery, Said]]] = {}
        self._outcomes = Outcomes(self._deliveries, self._tasks, base.signals)
        base.signals.on(Topic.INBOX, self._hear)
        base.signals.on_sweep(self._look_again)

    def start(self) -> None:
        """Begin to read, starting with what the last run left unread."""
        for adapter in self._base.adapters.values():
            self.open(adapter)

    def open(self, adapter: Adapter) -> None:
        """Read the deliveries of one adapter from now on; one that replaces another continues.

        Only the leader reads.
        """
        name = adapter.service_name
        if self._base.signals.is_leader and name not in self._wakes:
            wake = self._wakes[name] = asyncio.Event()
            self._tasks.start(self._read(adapter, wake), name=name)

    def shut(self, name: str) -> None:
        """Stop reading the deliveries of an adapter that is gone."""
        if (wake := self._wakes.pop(name, None)) is not None:
            wake.set()

    async def drained(self, name: str) -> None:
        """Wait until nothing is unread for an adapter."""
        while await self._deliveries.pending(name, 0):
            await self._base.clock.sleep(DRAIN_SECONDS)

    async def close(self) -> None:
        """Stop reading; what is unread stays in the inbox."""
        await self._tasks.close()

    @asynccontextmanager
    async def pause(self, place: PlaceKey) -> AsyncIterator[None]:
        """Decide on nothing in a place meanwhile; what arrives waits.

        Raises:
            TimeoutError: a message there has been waiting for its decision for too long.
        """
        async with asyncio.timeout(PAUSE_SECONDS):
            while place in self._places:
                await self._base.clock.sleep(DRAIN_SECONDS)
        self._places[place] = deque()
        try:
            yield
        finally:
            if self._places[place]:
                self._tasks.start(self._work(place), name=str(place))
            else:
                del self._places[place]

    async def take(self, delivery: Delivery) -> None:
        """Store a delivery; it may be acknowledged as soon as this returns.

        Raises:
            StoreUnavailable: it was not stored.
        """
        await self._deliveries.add(delivery)
        self._base.metrics.count("deliveries", adapter=delivery.adapter, outcome="accepted")
        self.wake(delivery.adapter)

    def wake(self, name: str) -> None:
        """Have what was stored for an adapter read: here, or by the leader."""
        if self._base.signals.is_leader:
            self._wake(name)
        else:
            self._base.signals.send(Topic.INBOX, adapter=name)

    def _wake(self, name: str) -> None:
        if (wake := self._wakes.get(name)) is not None:
            wake.set()

    async def settle(self, delivery: Delivery) -> Accepted:
        """Store a delivery and wait for its outcome; one that is known by its id changes nothing.

        Raises:
            BridgeError: it could not be stored, or it failed.
        """
        key = (delivery.adapter, delivery.delivery_id)
        if (same := self._outcomes.find(key)) is not None:
            outcome = await asyncio.shield(same)
        elif not await self._outcomes.is_decided(key):
            future = self._outcomes.expect(key)
            try:
                await self.take(delivery)
            except BaseException as error:
                cut_off = StoreUnavailable(wording.CUT_OFF)
                self._outcomes.tell(key, error if isinstance(error, BridgeError) else cut_off)
                raise
            outcome = await asyncio.shield(future)
        else:
            outcome = Accepted(repeated=True)
        if isinstance(outcome, BridgeError):
            raise outcome
        return outcome

    def _hear(self, facts: Facts) -> None:
        """Read what another member stored, as the leader."""
        if not self._base.signals.is_leader:
            return
        if "awaited" in facts:
            self._outcomes.expect_afar((facts["adapter"], facts["awaited"]))
        else:
            self._wake(facts["adapter"])

    def _look_again(self) -> None:
        """Find what was stored while signals were lost."""
        if self._base.signals.is_leader:
            for name in self._wakes:
                self._wake(name)

    async def _read(self, adapter: Adapter, wake: asyncio.Event) -> None:
        last, name = 0, adapter.service_name
        prepared: Adapter | None = None
        while self._wakes.get(name) is wake:
            wake.clear()
            adapter = self._base.adapters.get(name, adapter)
            if adapter is not prepared:
                await adapter.prepare()
                prepared = adapter
            try:
                last = await self._read_on(adapter, last)
            except Exception:
                logger.exception("could not read the inbox of %s", name)
                await self._base.clock.sleep(READ_AGAIN_SECONDS)
            else:
                await wake.wait()

    async def _read_on(self, adapter: Adapter, last: int) -> int:
        """Read everything after a number; returns the number of the last one."""
        while found := await self._deliveries.pending(adapter.service_name, last):
            # Together, so that ignored deliveries are settled in one commit, not one each.
            parsing = []
            for delivery in found:
                last = delivery.seq
                await self._follow_name(adapter, delivery)
                parsing.append(self._tasks.start(self._parse(adapter, delivery), name="parse"))
                await asyncio.sleep(0)  # in order, and never many in a row
            await asyncio.wait(parsing)
            for each in parsing:
                each.result()
            if len(found) == 1:
                break  # that was all; what came since wakes the reader again
        return last

    async def _follow_name(self, adapter: Adapter, delivery: Delivery) -> None:
        """Apply a repository's new name before anything else in the delivery."""
        if self._renames is None:
            return
        try:
            naming = adapter.naming(delivery)
            if naming is not None:
                await self._renames.follow(naming)
        except Exception:
            # Otherwise the reader would retry it for ever and never read what is behind it.
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)

    async def _parse(self, adapter: Adapter, delivery: Delivery) -> None:
        """Parse one delivery and queue it for its place."""
        try:
            inbound = self._base.hooks.parse(delivery) or adapter.parse(delivery)
        except DeliveryRefused as error:
            logger.info("delivery %d of %s refused: %s", delivery.seq, delivery.adapter, error)
            await self._note(delivery, "refused", error.reason)
            return
        except DeliveryUnreadable as error:
            await self._fail(delivery, error)
            return
        except Exception as error:
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(type(error).__name__))
            return
        match inbound:
            case None:
                await self._note(delivery, "done", Reason.NOT_FOR_US)
            case Answered():
                self._tasks.start(self._answer(delivery, inbound), name="answer")
            case Chore():
                self._tasks.start(self._do(adapter, delivery, inbound), name="chore")
            case Heard():
                self._queue(delivery, storable(inbound))
            case News() if self._proposals is None:
                await self._note(delivery, "done", Reason.NOTHING_PROPOSED)
            case Changed() | Rated() | News():
                self._queue(delivery, inbound)

    def _queue(self, delivery: Delivery, said: Said) -> None:
        waiting = self._places.get(said.place)
        if waiting is not None:
            waiting.append((delivery, said))
            return
        self._places[said.place] = deque([(delivery, said)])
        self._tasks.start(self._work(said.place), name=str(said.place))

    async def _work(self, place: PlaceKey) -> None:
        """Decide on the messages of one place, one after another."""
        waiting = self._places[place]
        try:
            while waiting:
                delivery, said = waiting[0]
                try:
                    await self._deal_with(delivery, said)
                except Exception as error:
                    logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
                    await self._fail_visibly(delivery, said, type(error).__name__)
                waiting.popleft()
        finally:
            del self._places[place]

    async def _deal_with(self, delivery: Delivery, said: Said) -> None:
        match said:
            case Heard():
                began = self._base.clock.now()
                decided = await self._dispatcher.decide(delivery, said)
                if isinstance(decided, str):
                    await self._note(delivery, "done", decided)
                    decided = Accepted()
                elif not decided.turns and not decided.repeated:
                    self._tasks.start(self._base.hooks.on_decided(said), name="decided")
                self._trace(delivery, began, decided)
                self._tell(delivery, decided)
            case Changed():
                unwritten = await self._dispatcher.correct(delivery, said)
                if unwritten is not None:
                    await self._note(delivery, *unwritten)
                self._tell(delivery, Accepted())
            case Rated():
                why = await self._dispatcher.answers.rate(delivery, said)
                if why is not None:
                    await self._note(delivery, "refused", why)
            case News():
                assert self._proposals is not None, "else the news was ignored"
                reason = await self._proposals.take(delivery.adapter, said)
                await self._note(delivery, "done", reason)

    def _trace(self, delivery: Delivery, began: float, decided: Accepted) -> None:
        for turn in decided.turns:
            arrived, now, by = delivery.received_at, self._base.clock.now(), delivery.adapter
            self._base.metrics.trace("delivery", turn.turn, arrived, began, adapter=by)
            self._base.metrics.trace("intake", turn.turn, began, now, adapter=by)

    async def _answer(self, delivery: Delivery, answered: Answered) -> None:
        """Take an answer; the person is told if it does not count."""
        try:
            why = await self._dispatcher.answers.answer(answered)
        except Exception as error:
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(type(error).__name__))
            return
        if why is None:
            await self._note(delivery, "done", Reason.ANSWERED)
        else:
            await self._note(delivery, "refused", why)
            await self._dispatcher.answers.turn_down(delivery, answered, why)

    async def _do(self, adapter: Adapter, delivery: Delivery, chore: Chore) -> None:
        """Let an adapter do what its platform expects of it."""
        try:
            await adapter.do_chore(chore)
        except Exception as error:
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(str(error) or type(error).__name__))
        else:
            await self._note(delivery, "done", Reason.CHORE)

    async def _fail_visibly(self, delivery: Delivery, heard: Said, cause: str) -> None:
        """Tell the place that a message failed."""
        if not isinstance(heard, Heard):
            await self._fail(delivery, DeliveryUnreadable(cause))
            return
        try:
            words = await self._dispatcher.give_up(delivery, heard, cause)
        except Exception:
            # Nothing of it can be stored; the next message of this place must not wait for it.
            logger.exception("delivery %d of %s", delivery.seq, delivery.adapter)
            await self._fail(delivery, DeliveryUnreadable(cause))
        else:
            self._tell(delivery, DeliveryUnreadable(words))

    async def _fail(self, delivery: Delivery, error: BridgeError) -> None:
        logger.warning("delivery %d of %s failed: %s", delivery.seq, delivery.adapter, error)
        await self._note(delivery, "failed", str(error))
        self._tell(delivery, error)

    async def _note(self, delivery: Delivery, state: DeliveryState, reason: str) -> None:
        await persist(self._base.clock, self._deliveries.settle, delivery.seq, state, reason)

    def _tell(self, delivery: Delivery, outcome: Outcome) -> None:
        self._outcomes.tell((delivery.adapter, delivery.delivery_id), outcome)
