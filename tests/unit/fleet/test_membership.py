"""When a member takes another one to be gone, and when it ends itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from app.errors import StoreUnavailable
from app.fleet.membership import BEATS_PER_LEASE, Membership
from app.store.members import Beat, HandedOut, Member, MemberStore, Role
from tests.support.clock import ManualClock

LEASE = 10.0
PAUSE = LEASE / BEATS_PER_LEASE
CUT = HandedOut(sessions=(7,))


@dataclass
class Rows:
    """The members of a store; the others beat if they are lively."""

    clock: ManualClock
    others: list[str] = field(default_factory=list)
    lively: bool = True
    away: bool = False
    beats: int = 0
    taken: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    async def join(self, name: str, role: Role, slots: int) -> HandedOut:
        return HandedOut()

    def renew(self) -> bool:
        if self.away:
            raise StoreUnavailable("away")
        return "own" not in self.removed

    async def beat(self, load: Mapping[str, int], *, wants_lead: bool) -> Beat:
        if self.away:
            raise StoreUnavailable("away")
        self.beats += self.lively
        own = Member("own", 1, "all", 4, load, 0, self.clock.now())
        others = [replace(own, name=name, beats=self.beats) for name in self.others]
        return Beat((own, *others), "own" if wants_lead else "")

    async def take_over(self, lapsed: Sequence[Member]) -> HandedOut:
        self.taken += [each.name for each in lapsed]
        self.others = []
        return CUT

    async def leave(self) -> HandedOut:
        return HandedOut()


@dataclass
class Watched:
    """A membership and what it does."""

    clock: ManualClock
    rows: Rows
    membership: Membership
    deaths: list[str]
    handed_out: list[HandedOut]
    opened: list[str]

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / PAUSE)):
            await self.clock.asleep()
            await self.clock.advance(PAUSE)


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    clock = ManualClock()
    rows = Rows(clock)
    deaths: list[str] = []
    handed_out: list[HandedOut] = []
    opened: list[str] = []

    async def lead() -> None:
        opened.append("desk")

    membership = Membership(
        cast("MemberStore", rows),
        clock,
        name="own",
        role="all",
        slots=4,
        lease_seconds=LEASE,
        load=dict,
        lead=lead,
        handed_out=handed_out.append,
        die=deaths.append,
    )
    await membership.join()
    yield Watched(clock, rows, membership, deaths, handed_out, opened)
    await membership.leave()


async def test_a_member_that_is_silent_for_a_lease_is_taken_over(watched: Watched) -> None:
    watched.rows.others = ["other"]
    await watched.pass_time(LEASE)
    assert watched.rows.taken == []

    watched.rows.lively = False
    await watched.pass_time(LEASE)
    assert watched.rows.taken == []
    await watched.pass_time(2 * PAUSE)

    assert watched.rows.taken == ["other"]
    assert CUT in watched.handed_out


async def test_time_without_the_database_makes_no_other_member_silent(watched: Watched) -> None:
    watched.rows.others = ["other"]
    await watched.pass_time(PAUSE)
    watched.rows.lively = False
    watched.rows.away = True
    await watched.pass_time(2 * LEASE)
    watched.rows.away = False

    await watched.pass_time(2 * PAUSE)

    assert watched.rows.taken == []


async def test_a_member_ends_when_it_could_not_beat_for_a_lease(watched: Watched) -> None:
    watched.rows.others = ["other"]
    await watched.pass_time(PAUSE)
    watched.rows.away = True
    await watched.pass_time(LEASE - PAUSE)
    watched.membership.ensure()
    assert watched.deaths == []

    await watched.pass_time(2 * PAUSE)
    watched.membership.ensure()

    assert "lapsed" in watched.deaths[0]


async def test_a_member_that_is_alone_waits_for_the_database_for_ever(watched: Watched) -> None:
    await watched.pass_time(PAUSE)
    watched.rows.away = True

    await watched.pass_time(5 * LEASE)
    watched.membership.ensure()

    assert watched.deaths == []


@pytest.mark.parametrize("removed", [False, True])
async def test_a_member_that_was_stopped_ends_if_another_one_has_removed_it(
    watched: Watched, *, removed: bool
) -> None:
    await watched.pass_time(PAUSE)
    watched.rows.removed += ["own"] * removed
    watched.clock.jump(2 * LEASE)

    watched.membership.ensure()
    watched.membership.ensure()

    assert bool(watched.deaths) is removed


async def test_the_desk_is_opened_once(watched: Watched) -> None:
    await watched.pass_time(LEASE)

    assert watched.opened == ["desk"]
    assert watched.membership.is_leader
