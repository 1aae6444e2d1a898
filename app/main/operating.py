"""Joins what the operator does to a running bridge: pause, resume, drain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from app.core.suspension import Suspensions
from app.main.resources import Resources
from app.main.wiring import Joined
from app.model.suspension import ALL, Suspension
from app.server.parts import Check, Draining
from app.store.vitals import VitalStore

RESTORED = "paused: it was restored from a backup. Run `agent-bridge resume --all`"
DRAINING = "draining: no new turns begin"


class Operating:
    """What the operator does to one bridge."""

    def __init__(
        self, base: Resources, joined: Joined, go_on: Callable[[], Awaitable[None]]
    ) -> None:
        """Operate a bridge; `go_on` starts the work of one that was restored."""
        self._engine = joined.engine
        self._vitals: VitalStore = base.stores.vitals
        self._go_on = go_on
        self.suspensions = Suspensions(
            base.stores.suspensions, joined.engine, joined.outbox, joined.feed, base.clock
        )

    def paused(self) -> Sequence[Suspension]:
        """List what is paused."""
        return self.suspensions.all()

    async def pause(self, scope: str) -> None:
        """Begin no further turn in a scope."""
        await self.suspensions.pause(scope)

    async def resume(self, scope: str) -> bool:
        """Let a scope go on; False if it was not paused."""
        restored = self.suspensions.is_restored
        free = await self.suspensions.lift(scope)
        if restored and free is not None and scope == ALL:
            await self._go_on()
        self.suspensions.begin(free or ())
        return free is not None

    async def drain(self, *, begin: bool | None = None) -> Draining:
        """Begin to drain, or end that, and tell what still has to end."""
        if begin is True:
            self._engine.hold()
        elif begin is False:
            await self._engine.release()
        vitals = {each.name: each.value for each in await self._vitals.read()}
        return Draining(
            self._engine.is_holding, self._engine.working, int(vitals["outbox_waiting"])
        )

    def checks(self) -> list[Check]:
        """Say why a bridge that works should get no requests."""
        found = []
        if self._engine.is_holding:
            found.append(Check("drain", ok=False, words=DRAINING))
        if self.suspensions.is_restored:
            found.append(Check("restored", ok=False, words=RESTORED))
        return found
