"""Pauses and resumes work on behalf of the operator, and drains a bridge.

What is paused is in the store, and a turn checks it in the commit that begins it. Running turns end
as usual, and messages are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from app.core.runtime import Runtime
from app.features.part import Part
from app.features.pause.store import Suspension, SuspensionStore, describe_pause
from app.metrics import Check
from app.model.keys import PlaceKey
from app.retry import persist
from app.store.commits.admission import ALL

RESTORED: Final = "paused: it was restored from a backup. Run `agent-bridge resume --all`"
DRAINING: Final = "draining: no new turns begin"


@dataclass(frozen=True, slots=True)
class Draining:
    """How far a bridge that takes no new work is."""

    draining: bool
    turns: int
    """Turns that still run."""
    posts: int
    """Posts that have not arrived yet."""


class Pauses(Part):
    """What is paused in one bridge, and whether it is drained."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._store = runtime.stores.open(SuspensionStore)

    def paused(self) -> Sequence[Suspension]:
        """List what is paused."""
        return self._store.all()

    @override
    def holds_start(self) -> bool:
        """Tell whether the data comes from a backup and the operator has not resumed yet."""
        return any(each.reason == "restored" for each in self._store.all())

    async def pause(self, scope: str) -> None:
        """Begin no further turn in a scope; repeating it changes nothing."""
        runtime = self.runtime
        runtime.outbox.send(*await persist(runtime.clock, self._store.add, scope, "operator"))

    async def resume(self, scope: str) -> bool:
        """Let a scope go on; False if it was not paused."""
        runtime, was_restored = self.runtime, self.holds_start()
        free = await persist(runtime.clock, self._store.remove, scope)
        if was_restored and free is not None and scope == ALL:
            await runtime.go_on()
        for ref in free or ():
            runtime.engine.submit(ref.session)
            runtime.feed.notify(ref.session)
        return free is not None

    async def drain(self, *, begin: bool | None = None) -> Draining:
        """Begin to drain, or end that, and tell what still has to end."""
        engine = self.runtime.engine
        if begin is True:
            engine.hold()
        elif begin is False:
            await engine.release()
        vitals = {each.name: each.value for each in await self.runtime.stores.vitals.read()}
        return Draining(engine.is_holding, engine.working, int(vitals["outbox_waiting"]))

    @override
    def checks(self) -> Sequence[Check]:
        """Say why a bridge that works should get no requests."""
        found = []
        if self.runtime.engine.is_holding:
            found.append(Check("drain", ok=False, words=DRAINING))
        if self.holds_start():
            found.append(Check("restored", ok=False, words=RESTORED))
        return found

    @override
    def notices(self, place: PlaceKey | None, agents: Iterable[str]) -> Sequence[str]:
        """Say what is paused: of a place what concerns it, else everything."""
        paused, concerned = self._store.all(), set(agents)
        return [
            describe_pause(each, self.runtime.agents.name)
            for each in paused
            if place is None or each.covers(place, concerned)
        ]
