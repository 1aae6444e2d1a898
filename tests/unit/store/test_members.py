"""Members on PostgreSQL: fenced commits, the leader, claims, and what becomes of their work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.errors import StoreUnavailable
from app.features.pause.store import SuspensionStore
from app.model.posts import PostContent
from app.model.types import TurnState
from app.store.database import Database
from app.store.database.backend import Fence
from app.store.members import COMMON, Claim, ClaimStore, Member, MemberStore, Reason
from app.store.stores import Stores
from tests.support import postgres
from tests.support.memory import decision, heard


@dataclass
class Process:
    """One bridge as far as the store knows it."""

    name: str
    database: Database
    deaths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = SystemClock()
        fence = Fence(lambda: self.deaths.append(self.name))
        self.stores = Stores.on(self.database, clock.now)
        self.members = MemberStore(self.database, clock.now, fence)
        self.claims = ClaimStore(self.database, clock.now, fence)

    async def join(self, *, slots: int = 4) -> None:
        await self.members.join(self.name, "all", slots)

    async def see(self, name: str) -> Member:
        """Beat, and see another member as it is then."""
        members = (await self.members.beat({}, wants_lead=False)).members
        return next(each for each in members if each.name == name)

    async def say(self, place: str) -> int:
        """Let a message lead to a turn; return its session."""
        said = heard("hello", place)
        accepted = await self.stores.decisions.accept(decision(said, "demo"))
        return accepted.turns[0].session

    async def claim(
        self,
        session: int,
        why: Reason = "announced",
        load: dict[str, int] | None = None,
        *,
        total: int | None = None,
        of_agent: int | None = None,
    ) -> Claim:
        """Begin to serve a session with its next turn."""
        turn = self.stores.turns.next_turn(session)
        assert turn is not None
        return await self.claims.claim(turn, load or {}, why, total=total, of_agent=of_agent)

    async def end(self, session: int, turn: int) -> None:
        """End a session's turn, and serve it no longer."""
        await self.stores.turns.finish(turn, TurnState.DONE, PostContent(kind="turn"), ())
        await self.claims.release(session, {})

    @property
    def announced(self) -> list[tuple[int, str]]:
        """The sessions that are announced, each with its queue."""
        with self.database.engine.connect() as connection:
            rows = connection.exec_driver_sql(
                "select args['session']::int, queue_name from procrastinate_jobs order by id"
            )
            return [(session, queue) for session, queue in rows]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Process, Process]]:
    postgres.need_server()
    address = postgres.server().provide(tmp_path)
    processes = [Process(name, Database(address)) for name in ("ada", "bob")]
    for process in processes:
        process.database.open()
        await process.join()
    yield processes[0], processes[1]
    for process in processes:
        process.database.close()


async def test_a_member_that_returns_is_not_taken_for_the_one_that_was_removed(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    silent = await ada.see("bob")
    await ada.members.take_over([silent])

    await Process("bob", bob.database).join()
    await ada.members.take_over([silent])

    assert (await ada.see("bob")).epoch != silent.epoch


async def test_one_member_is_the_leader_until_it_is_gone(pair: tuple[Process, Process]) -> None:
    ada, bob = pair

    assert (await bob.members.beat({}, wants_lead=False)).leader == ""
    assert (await ada.members.beat({}, wants_lead=True)).leader == "ada"
    assert (await bob.members.beat({}, wants_lead=True)).leader == "ada"
    await ada.members.leave()

    assert (await bob.members.beat({}, wants_lead=True)).leader == "bob"


async def test_a_member_that_was_removed_commits_nothing(pair: tuple[Process, Process]) -> None:
    ada, bob = pair
    seen = await bob.see("ada")

    await bob.members.take_over([seen])

    with pytest.raises(StoreUnavailable, match="taken over"):
        await ada.say("t1")
    assert set(ada.deaths) == {"ada"}
    assert bob.stores.sessions.session(1) is None


async def test_a_member_that_has_left_commits_nothing_and_need_not_end_at_once(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    await ada.members.leave()

    with pytest.raises(StoreUnavailable):
        await ada.say("t1")

    assert ada.deaths == []


async def test_a_member_that_has_beaten_meanwhile_is_not_removed(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    seen = await bob.see("ada")
    await ada.members.beat({}, wants_lead=False)

    await bob.members.take_over([seen])

    await ada.say("t1")
    assert ada.deaths == []


async def test_a_lease_is_renewed_as_long_as_no_other_member_has_taken_over(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    seen = await bob.see("ada")

    assert ada.members.renew()
    await bob.members.take_over([seen])
    assert ada.members.renew()
    seen = await bob.see("ada")
    await bob.members.take_over([seen])

    assert not ada.members.renew()


async def test_a_process_that_starts_again_fences_its_own_last_run(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    again = Process("ada", Database(ada.database.engine.url.render_as_string()))
    again.database.open()
    await again.join()

    with pytest.raises(StoreUnavailable):
        await ada.say("t1")

    again.database.close()


async def test_the_work_of_a_member_that_is_gone_is_announced_to_all(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    running, waiting = await ada.say("t1"), await ada.say("t2")
    turn = ada.stores.turns.next_turn(running)
    assert turn is not None
    assert (await ada.claim(waiting)).answer == "granted"
    await ada.end(waiting, 2)
    assert (await ada.claim(running)).answer == "granted"
    await bob.say("t2")
    await bob.claims.announce(waiting)
    assert bob.announced == [(waiting, "ada")]

    seen = await bob.see("ada")
    handed_out = await bob.members.take_over([seen])

    assert handed_out.sessions == (running,)
    assert bob.announced[1:] == [(running, COMMON), (waiting, COMMON)]
    recovered = bob.stores.turns.turn(turn.id)
    assert recovered is not None
    assert recovered.state is TurnState.QUEUED


async def test_a_session_is_announced_to_the_member_that_served_it_while_that_has_room(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await bob.say("t1")
    await ada.claim(session)
    await ada.end(session, 1)
    await bob.say("t1")

    await bob.claims.announce(session)
    await ada.members.beat({"demo": 4}, wants_lead=False)
    await bob.claims.announce(session)

    assert bob.announced == [(session, "ada"), (session, COMMON)]


async def test_a_session_whose_turn_runs_is_announced_when_it_is_left(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await bob.say("t1")
    await ada.claim(session)
    await bob.say("t1")
    await bob.claims.announce(session)
    await bob.claims.announce_missing()
    assert bob.announced == []

    await ada.end(session, 1)

    assert bob.announced == [(session, COMMON)]


async def test_a_member_without_room_passes_a_session_on_to_the_one_with_least_to_do(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await ada.say("t1")

    assert await ada.claims.pass_on(session, {"demo": 4})
    assert not await bob.claims.pass_on(session, {"demo": 4})

    assert ada.announced == [(session, "bob")]


async def test_limits_hold_over_all_members(pair: tuple[Process, Process]) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await bob.members.beat({"demo": 2, "other": 1}, wants_lead=False)
    load = {"demo": 1}

    full = await ada.claim(session, load=load, total=3)
    full_of_agent = await ada.claim(session, load=load, of_agent=2)
    granted = await ada.claim(session, load=load, total=4, of_agent=3)

    assert [full.answer, full_of_agent.answer, granted.answer] == ["full", "full", "granted"]


async def test_a_session_that_is_served_goes_on_over_the_limit(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    session = await ada.say("t1")
    await ada.claim(session, load={"demo": 1}, total=1)
    await ada.stores.turns.finish(1, TurnState.DONE, PostContent(kind="turn"), ())
    await ada.say("t1")

    claim = await ada.claim(session, "served", {"demo": 2}, total=1)

    assert claim.answer == "granted"


@pytest.mark.parametrize("why", ["submitted", "announced", "served"])
async def test_a_session_whose_turn_runs_is_served_by_no_other(
    pair: tuple[Process, Process], why: Reason
) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await ada.claim(session)
    await ada.say("t1")

    claim = await bob.claim(session, why)

    assert claim.answer == "elsewhere"
    turn = bob.stores.turns.next_turn(session)
    assert turn is not None


async def test_a_turn_that_was_put_back_goes_before_the_one_that_another_member_saw(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await ada.claim(session)
    await ada.say("t1")
    late = bob.stores.turns.next_turn(session)
    assert late is not None
    await bob.members.take_over([await bob.see("ada")])

    claim = await bob.claims.claim(late, {}, "announced", total=None, of_agent=None)

    assert claim.answer == "idle"


async def test_what_the_operator_paused_is_not_served(pair: tuple[Process, Process]) -> None:
    ada, _ = pair
    session = await ada.say("t1")
    turn = ada.stores.turns.next_turn(session)
    assert turn is not None
    await ada.stores.open(SuspensionStore).add("all", "operator")

    claim = await ada.claims.claim(turn, {"demo": 1}, "announced", total=None, of_agent=None)
    await ada.claims.announce(session)
    await ada.claims.announce_missing()

    assert claim.answer == "idle"
    assert ada.announced == []
    await ada.stores.open(SuspensionStore).remove("all")
    await ada.claims.announce_missing()
    assert ada.announced == [(session, COMMON)]


async def test_a_session_is_served_without_a_job_by_the_member_that_committed_its_turn(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    session = await ada.say("t1")

    claim = await ada.claim(session, "submitted", {"demo": 1})

    assert (claim.answer, claim.has_moved) == ("granted", False)
    assert ada.announced == []


async def test_a_session_waits_for_the_member_that_serves_it_better(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    known, new = await ada.say("t1"), await ada.say("t2")
    await bob.claim(known)
    await bob.end(known, 1)
    await ada.say("t1")

    for session in (known, new):
        claim = await ada.claim(session, "submitted", {"demo": 3})
        assert claim.answer == "elsewhere"

    # The first knows it, and for the second it has less to do.
    assert ada.announced == [(known, "bob"), (new, COMMON)]


async def test_a_member_learns_that_a_conversation_went_on_elsewhere(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await ada.claim(session)
    await ada.end(session, 1)
    await ada.say("t1")

    assert (await bob.claim(session)).has_moved


async def test_a_wake_up_is_committed_with_the_turn_that_it_is_for_or_not_at_all(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await bob.members.take_over([await bob.see("ada")])

    with pytest.raises(StoreUnavailable):
        await ada.claims.announce(session)

    assert bob.announced == []
