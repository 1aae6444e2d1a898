"""Hands the outcome of a delivery to the caller that waits for it, here or at another member."""

from __future__ import annotations

import asyncio

from app.errors import BridgeError, DeliveryUnreadable
from app.model.inbound import Accepted
from app.model.types import TurnRef
from app.signals import Facts, Signals, Topic
from app.store.inbox import DeliveryStore
from app.tasks import Tasks

Key = tuple[str, str]
"""The adapter of a delivery, and its id there."""
Outcome = Accepted | BridgeError


class Outcomes:
    """What callers wait for."""

    def __init__(self, deliveries: DeliveryStore, tasks: Tasks, signals: Signals) -> None:
        self._deliveries = deliveries
        self._tasks = tasks
        self._awaited: dict[Key, asyncio.Future[Outcome]] = {}
        self._awaited_afar: dict[Key, bool] = {}
        """What other members wait for, and whether that was said since the last sweep."""
        self._signals = signals
        signals.on(Topic.SETTLED, self._take)
        signals.on_sweep(self._look_again)

    def find(self, key: Key) -> asyncio.Future[Outcome] | None:
        """Find the outcome that another caller waits for."""
        return self._awaited.get(key)

    async def is_decided(self, key: Key) -> bool:
        """Tell whether a delivery has an outcome."""
        return await self._deliveries.outcome(*key) not in {None, "new"}

    def expect(self, key: Key) -> asyncio.Future[Outcome]:
        """Wait for the outcome of a delivery that is about to be stored."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._awaited[key] = future
        if not self._signals.is_leader:
            # Before it is stored: the leader may read it at once.
            self._signals.send(Topic.INBOX, adapter=key[0], awaited=key[1])
        return future

    def expect_afar(self, key: Key) -> None:
        """Note what another member waits for."""
        self._awaited_afar[key] = True
        self._tasks.start(self._tell_decided(key), name="outcome")

    def tell(self, key: Key, outcome: Outcome) -> None:
        """Tell the caller that waits for a delivery what became of it."""
        self._resolve(key, outcome)
        self._tell_afar(key, outcome)

    async def _tell_decided(self, key: Key) -> None:
        """Tell another member what it waits for, if that was decided before it said so."""
        if await self.is_decided(key):
            self._tell_afar(key, Accepted(repeated=True))

    def _tell_afar(self, key: Key, outcome: Outcome) -> None:
        if self._awaited_afar.pop(key, None) is None:
            return
        if isinstance(outcome, Accepted):
            turns = [[ref.session, ref.turn] for ref in outcome.turns]
            facts = {"turns": turns, "repeated": outcome.repeated}
            self._signals.send(Topic.SETTLED, adapter=key[0], id=key[1], **facts)
        else:
            self._signals.send(Topic.SETTLED, adapter=key[0], id=key[1], error=str(outcome))

    def _take(self, facts: Facts) -> None:
        """Take what became of a delivery that the leader read."""
        error, turns = facts.get("error"), facts.get("turns", ())
        refs = tuple(TurnRef(session, turn) for session, turn in turns)
        accepted = Accepted(refs, repeated=facts.get("repeated", False))
        self._resolve(
            (facts["adapter"], facts["id"]), DeliveryUnreadable(error) if error else accepted
        )

    def _look_again(self) -> None:
        """Find what was decided while signals were lost."""
        if self._signals.is_leader:
            recent = [key for key, is_new in self._awaited_afar.items() if is_new]
            self._awaited_afar = dict.fromkeys(recent, False)
        elif self._awaited:
            self._tasks.start(self._look_for_outcomes(), name="outcomes")

    async def _look_for_outcomes(self) -> None:
        for key in list(self._awaited):
            if await self.is_decided(key):
                self._resolve(key, Accepted(repeated=True))

    def _resolve(self, key: Key, outcome: Outcome) -> None:
        future = self._awaited.pop(key, None)
        if future is not None and not future.done():
            future.set_result(outcome)
