"""Members on PostgreSQL: fenced commits, the desk, jobs, and what becomes of a member's work."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from app.clock import SystemClock
from app.errors import StoreUnavailable
from app.features.pause.store import SuspensionStore
from app.model.members import COMMON, Claim, Member
from app.model.posts import PostContent
from app.model.types import TurnState
from app.store.database import Database
from app.store.fencing import Fence
from app.store.jobs import JobStore
from app.store.members import MemberStore
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
        self.jobs = JobStore(self.database, fence)

    async def join(self, *, slots: int = 4) -> None:
        await self.members.join(self.name, "all", slots)

    async def see(self, name: str) -> Member:
        """Beat, and see another member as it is then."""
        members = (await self.members.beat({}, wants_desk=False)).members
        return next(each for each in members if each.name == name)

    async def say(self, place: str) -> int:
        """Let a message lead to a turn; return its session."""
        said = heard("hello", place)
        accepted = await self.stores.decisions.accept(decision(said, "demo"))
        return accepted.turns[0].session

    async def claim(
        self,
        session: int,
        job: int | None,
        load: dict[str, int] | None = None,
        *,
        total: int | None = None,
        of_agent: int | None = None,
    ) -> Claim:
        """Begin to serve a session with its next turn."""
        turn = self.stores.turns.next_turn(session)
        assert turn is not None
        return await self.jobs.claim(turn, job, load or {}, total=total, of_agent=of_agent)

    def jobs_now(self) -> list[tuple[str, str, str]]:
        """List the jobs: session, queue and state."""
        with self.database.engine.connect() as connection:
            rows = connection.exec_driver_sql(
                "select lock, queue_name, status::text from procrastinate_jobs order by id"
            )
            return [tuple(row) for row in rows]

    def fetch(self, engine: int) -> int | None:
        """Fetch a job as Procrastinate does."""
        with self.database.engine.connect() as connection:
            query = "select id from procrastinate_fetch_job_v2(array['common', %s]::varchar[], %s)"
            return connection.exec_driver_sql(query, (self.name, engine)).scalar()

    async def employ(self) -> int:
        with self.database.engine.connect() as connection:
            query = "select * from procrastinate_register_worker_v1()"
            engine = int(connection.exec_driver_sql(query).scalar_one())
        await self.jobs.employ(engine)
        return engine


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


async def test_one_member_has_the_desk_until_it_is_gone(pair: tuple[Process, Process]) -> None:
    ada, bob = pair

    assert (await bob.members.beat({}, wants_desk=False)).desk == ""
    assert (await ada.members.beat({}, wants_desk=True)).desk == "ada"
    assert (await bob.members.beat({}, wants_desk=True)).desk == "ada"
    await ada.members.leave()

    assert (await bob.members.beat({}, wants_desk=True)).desk == "bob"


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
    await ada.members.beat({}, wants_desk=False)

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


async def test_the_work_of_a_member_that_is_gone_is_queued_for_all(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    engine = await ada.employ()
    running, waiting = await ada.say("t1"), await ada.say("t2")
    await ada.jobs.queue(running)
    turn = ada.stores.turns.next_turn(running)
    assert turn is not None
    claim = await ada.claim(running, ada.fetch(engine), {"demo": 1})
    assert claim.answer == "granted"

    # Queued twice: behind its own job, and with no job at all.
    await ada.jobs.queue(running)
    seen = await bob.see("ada")
    handed_out = await bob.members.take_over([seen])

    assert handed_out.sessions == (running,)
    assert bob.jobs_now() == [
        (str(running), COMMON, "todo"),
        (str(waiting), COMMON, "todo"),
    ]
    recovered = bob.stores.turns.turn(turn.id)
    assert recovered is not None
    assert recovered.state is TurnState.QUEUED
    with pytest.raises(Exception, match="foreign key"):
        ada.fetch(engine)


async def test_a_session_is_queued_for_the_member_that_served_it_while_that_has_room(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    engine = await ada.employ()
    session = await bob.say("t1")
    await bob.jobs.queue(session)
    job = ada.fetch(engine)
    assert job is not None
    await ada.claim(session, job, {"demo": 1})
    await ada.jobs.finish(job, {})

    await bob.jobs.queue(session)
    assert bob.jobs_now() == [(str(session), "ada", "todo")]
    assert ada.fetch(engine) is not None
    await ada.members.beat({"demo": 4}, wants_desk=False)
    await bob.jobs.queue(session)
    await ada.jobs.share()
    assert bob.jobs_now() == [(str(session), "ada", "doing"), (str(session), "ada", "todo")]


async def test_a_member_that_is_full_leaves_what_waits_for_it_to_others(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    first, second = await bob.say("t1"), await bob.say("t2")
    for session in (first, second):
        await ada.claim(session, 0)
    await bob.jobs.queue(first)
    assert bob.jobs_now() == [(str(first), "ada", "todo")]
    await ada.members.beat({"demo": 4}, wants_desk=False)

    await bob.jobs.queue(second)
    await ada.jobs.share()

    assert bob.jobs_now() == [(str(first), COMMON, "todo"), (str(second), COMMON, "todo")]


async def test_a_job_whose_session_has_more_work_stays(pair: tuple[Process, Process]) -> None:
    ada, _ = pair
    engine = await ada.employ()
    session = await ada.say("t1")
    await ada.jobs.queue(session)
    job = ada.fetch(engine)
    assert job is not None

    await ada.jobs.finish(job, {})

    assert ada.jobs_now() == [(str(session), COMMON, "todo")]


async def test_limits_hold_over_all_members(pair: tuple[Process, Process]) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await bob.members.beat({"demo": 2, "other": 1}, wants_desk=False)
    load = {"demo": 1}

    full = await ada.claim(session, 0, load, total=3)
    full_of_agent = await ada.claim(session, 0, load, of_agent=2)
    granted = await ada.claim(session, 0, load, total=4, of_agent=3)

    assert [full.answer, full_of_agent.answer, granted.answer] == ["full", "full", "granted"]


async def test_a_job_that_was_fetched_without_an_answer_is_found(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    engine = await ada.employ()
    session = await ada.say("t1")
    await ada.jobs.queue(session)
    assert ada.fetch(engine) is not None

    await ada.jobs.reclaim([])

    assert ada.jobs_now() == [(str(session), COMMON, "todo")]


async def test_a_session_whose_turn_runs_is_served_by_no_other(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    session = await ada.say("t1")
    await ada.claim(session, 0)
    await ada.say("t1")

    claim = await bob.claim(session, 0)

    assert claim.answer == "full"


async def test_what_the_operator_paused_is_not_served(pair: tuple[Process, Process]) -> None:
    ada, _ = pair
    engine = await ada.employ()
    session = await ada.say("t1")
    await ada.jobs.queue(session)
    job = ada.fetch(engine)
    assert job is not None
    turn = ada.stores.turns.next_turn(session)
    assert turn is not None
    await ada.stores.open(SuspensionStore).add("all", "operator")

    claim = await ada.jobs.claim(turn, job, {"demo": 1}, total=None, of_agent=None)
    await ada.jobs.finish(job, {})
    await ada.jobs.queue_all()

    assert claim.answer == "idle"
    assert ada.jobs_now() == []
    await ada.stores.open(SuspensionStore).remove("all")
    await ada.jobs.queue_all()
    assert ada.jobs_now() == [(str(session), COMMON, "todo")]


async def test_a_session_is_served_without_waiting_for_a_job(pair: tuple[Process, Process]) -> None:
    ada, _ = pair
    await ada.employ()
    session = await ada.say("t1")

    claim = await ada.claim(session, None, {"demo": 1})

    assert claim.answer == "granted"
    assert ada.jobs_now() == [(str(session), "ada", "doing")]
    assert claim.job is not None
    await ada.jobs.finish(claim.job, {})
    assert ada.jobs_now() == []


async def test_a_session_that_has_a_job_is_not_served_without_it(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    await ada.employ()
    session = await ada.say("t1")
    await bob.jobs.queue(session)

    claim = await ada.claim(session, None, {"demo": 1})

    assert claim.answer == "elsewhere"
    assert ada.jobs_now() == [(str(session), COMMON, "todo")]


async def test_a_session_waits_for_the_member_that_serves_it_better(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    await ada.employ()
    await bob.employ()
    known, new = await ada.say("t1"), await ada.say("t2")
    served = await bob.claim(known, None, {"demo": 1})
    assert served.job is not None
    turn = bob.stores.turns.turn(1)
    assert turn is not None
    await bob.stores.turns.finish(turn.id, TurnState.DONE, PostContent(kind="turn"), ())
    await bob.jobs.finish(served.job, {})
    await ada.say("t1")

    for session in (known, new):
        claim = await ada.claim(session, None, {"demo": 3})
        assert claim.answer == "elsewhere"

    # The first knows it, and for the second it has less to do.
    assert ada.jobs_now() == [(str(known), "bob", "todo"), (str(new), COMMON, "todo")]


async def test_a_member_that_runs_no_turns_yet_leaves_a_session_to_others(
    pair: tuple[Process, Process],
) -> None:
    ada, _ = pair
    session = await ada.say("t1")

    claim = await ada.claim(session, None, {"demo": 1})

    assert claim.answer == "elsewhere"
    assert ada.jobs_now() == [(str(session), COMMON, "todo")]
    turn = ada.stores.turns.next_turn(session)
    assert turn is not None
    assert turn.state is TurnState.QUEUED


async def test_members_are_told_when_a_job_that_was_put_back_can_be_fetched(
    pair: tuple[Process, Process],
) -> None:
    ada, bob = pair
    engine = await ada.employ()
    session = await ada.say("t1")
    await ada.jobs.queue(session)
    job = ada.fetch(engine)
    assert job is not None
    with psycopg.connect(_address(bob), autocommit=True) as line:
        line.execute('listen "procrastinate_queue_v1#common"')

        await ada.jobs.put_back(job, 7.0, {})

        (told,) = line.notifies(timeout=30, stop_after=1)
    assert json.loads(told.payload)["seconds"] == 7.0
    assert ada.fetch(engine) is None


def _address(process: Process) -> str:
    url = process.database.engine.url.set(drivername="postgresql")
    return url.render_as_string(hide_password=False)
