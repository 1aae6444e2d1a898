"""Keeps this process a member, takes over from those that are gone, and ends it once it is one.

A process whose lease has lapsed does nothing more: it kills its agents, and then itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from app.clock import Clock
from app.errors import StoreUnavailable
from app.metrics import Vital, measure_members
from app.retry import persist
from app.store.members import Beat, HandedOut, Member, MemberStore, Role
from app.tasks import Tasks

logger = logging.getLogger(__name__)

BEATS_PER_LEASE = 5
"""How often a member says that it is there: four beats in a row may be lost or late."""
LOOK_SECONDS = 0.25
"""How often a separate thread looks at the lease: the event loop may be stopped or busy."""


@dataclass(slots=True)
class _Seen:
    """What was last seen of another member."""

    epoch: int
    beats: int
    silent: float = 0.0
    """For how long nothing was seen of it while it could have been."""


class Membership:
    """The membership of this process."""

    def __init__(
        self,
        members: MemberStore,
        clock: Clock,
        *,
        name: str,
        role: Role,
        slots: int,
        lease_seconds: float,
        load: Callable[[], Mapping[str, int]],
        lead: Callable[[], Awaitable[None]],
        handed_out: Callable[[HandedOut], None],
        die: Callable[[str], None],
    ) -> None:
        """Prepare; `load` counts the turns that run here, by agent.

        `lead` is called once this member is the leader, `handed_out` when work of another
        member was cut off, and `die`, from any thread, when this process must end at once.
        """
        self._members = members
        self._clock = clock
        self.name = name
        self.role = role
        self.slots = slots if role != "front" else 0
        self._lease = lease_seconds
        self._load = load
        self._start_leading = lead
        self._handed_out = handed_out
        self._die = die
        self._tasks = Tasks("membership")
        self._beats = Tasks("beats", is_held=False)
        self._others: dict[str, _Seen] = {}
        self._beaten_at = 0.0
        self._looked_at = 0.0
        self._left = threading.Event()
        self._watch = threading.Thread(target=self._look, name="lease", daemon=True)
        self.is_leader = False
        """Whether this member does what one member does for all."""
        self.members: tuple[Member, ...] = ()
        """All members, as of the last beat."""

    async def join(self) -> None:
        """Become a member, and stay one until `leave`."""
        began = self._clock.monotonic()
        handed_out = await persist(
            self._clock, self._members.join, self.name, self.role, self.slots
        )
        self._beaten_at = began
        self._handed_out(handed_out)
        logger.info("joined as %s, role %s", self.name, self.role)
        self._watch.start()
        self._beats.start(self._keep(), name="beats")

    async def leave(self) -> None:
        """Stop being a member, if this is one; others go on with what is left."""
        await self._beats.close()
        await self._tasks.close()
        if not self._watch.is_alive():
            return
        self._left.set()
        try:
            await self._members.leave()
        except StoreUnavailable as error:
            logger.warning("left without a word, others wait for the end of the lease: %s", error)

    def ensure(self) -> None:
        """End this process if others have its work: call it before what cannot be taken back.

        A lease that has lapsed is renewed if no other member has made use of that. One that was
        alone at its last beat waits for a database that is away.
        """
        now = self._clock.monotonic()
        if now - self._beaten_at <= self._lease:
            return
        try:
            is_member = self._members.renew()
        except StoreUnavailable:
            is_member = not self._others
        else:
            self._beaten_at = now
        if not is_member:
            self._die("the lease has lapsed")

    def measure(self) -> Sequence[Vital]:
        """Count the members, as of the last beat."""
        roles = [each.role for each in self.members]
        oldest = min((each.seen_at for each in self.members), default=self._clock.now())
        silent = max(self._clock.now() - oldest, 0.0)
        return measure_members(roles, silent=silent, is_leader=self.is_leader)

    async def _keep(self) -> None:
        """Beat, and look at the others."""
        while True:
            began = self._clock.monotonic()
            try:
                beat = await self._members.beat(self._load(), wants_lead=self.role != "worker")
            except StoreUnavailable as error:
                logger.warning("could not beat: %s", error)
            else:
                self._beaten_at = began
                await self._follow(beat)
            pause = self._lease / BEATS_PER_LEASE - (self._clock.monotonic() - began)
            await self._clock.sleep(max(pause, 0.0))

    async def _follow(self, beat: Beat) -> None:
        """Take over from members that have lapsed, and from the leader if this is the next one."""
        self.members = beat.members
        if lapsed := self._find_lapsed(beat.members):
            await self._take_over(lapsed)
        if beat.leader == self.name and not self.is_leader:
            self.is_leader = True
            logger.info("is the leader")
            self._tasks.start(self._lead(), name="lead")

    async def _lead(self) -> None:
        try:
            await self._start_leading()
        except Exception:
            logger.exception("could not lead")
            self._die("another member can do better")

    def _find_lapsed(self, members: Sequence[Member]) -> list[Member]:
        """Find the others that were silent for a lease.

        Only this member's own clock counts, and little of the time in which the database was away
        for it: others could not beat then either.
        """
        now = self._clock.monotonic()
        passed = min(now - self._looked_at, 2 * self._lease / BEATS_PER_LEASE)
        self._looked_at = now
        others: dict[str, _Seen] = {}
        lapsed = []
        for each in members:
            seen = self._others.get(each.name)
            if each.name == self.name:
                continue
            if seen is None or (seen.epoch, seen.beats) != (each.epoch, each.beats):
                seen = _Seen(each.epoch, each.beats)
            else:
                seen.silent += passed
            others[each.name] = seen
            if seen.silent > self._lease:
                lapsed.append(each)
        self._others = others
        return lapsed

    async def _take_over(self, lapsed: Sequence[Member]) -> None:
        names = ", ".join(each.name for each in lapsed)
        logger.warning("no sign of %s: taking over", names)
        try:
            self._handed_out(await self._members.take_over(lapsed))
        except StoreUnavailable as error:
            logger.warning("could not take over from %s: %s", names, error)

    def _look(self) -> None:
        while not self._left.wait(LOOK_SECONDS if self._others else self._lease / BEATS_PER_LEASE):
            if self._others:
                self.ensure()
