"""Stores jobs in Procrastinate's table on PostgreSQL: one for each session that has work.

The turn table is the truth: a job that is missing is made from it, and one too many does nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, column, exists, func, select, table, text, update

from app.model.members import COMMON, TASK, Claim
from app.model.types import Turn, TurnState
from app.store.backend import to_json
from app.store.commits.endings import RUNNING
from app.store.commits.suspending import SUSPENDED
from app.store.database import Database
from app.store.fencing import Fence
from app.store.tables import member, session, turn
from app.store.turns import START

_IS_QUEUED = turn.c.state == TurnState.QUEUED
_FIRST = select(func.min(turn.c.id)).where(_IS_QUEUED).group_by(turn.c.session)
_READY = select(turn.c.session).where(
    turn.c.id.in_(_FIRST), turn.c.held.is_(False), turn.c.paused.is_(None), ~SUSPENDED
)
"""The sessions whose next turn can run."""
_IS_READY = select(turn.c.session).where(
    turn.c.id
    == select(func.min(turn.c.id))
    .where(_IS_QUEUED, turn.c.session == bindparam("of"))
    .scalar_subquery(),
    turn.c.held.is_(False),
    turn.c.paused.is_(None),
    ~SUSPENDED,
)
_CAN_BEGIN = exists().where(
    turn.c.id == bindparam("turn"),
    _IS_QUEUED,
    turn.c.held.is_(False),
    turn.c.paused.is_(None),
    ~SUSPENDED,
)
_IS_RUNNING = exists().where(turn.c.session == session.c.id, turn.c.state.in_(RUNNING))
_jobs = table("procrastinate_jobs", column("lock"))
_HAS_JOB = (
    select(_jobs.c.lock)
    .where(_jobs.c.lock == bindparam("lock"), text("status in ('todo', 'doing')"))
    .exists()
)
_SITUATION = select(
    session.c.agent,
    session.c.served_by,
    _CAN_BEGIN.label("can_begin"),
    _IS_RUNNING.label("is_running"),
    _HAS_JOB.label("has_job"),
).where(session.c.id == bindparam("of"))
_MEMBERS = select(member.c.name, member.c.slots, member.c.load)
_SERVE = """
    with job as ({job}),
        noted as (
            update member set load = cast(:load as json)
            where name = :own and exists (select 1 from job)
        ),
        served as (
            update session set served_by = :own where id = :of and exists (select 1 from job)
        )
    select id from job
"""
_SERVE_JOB = text(_SERVE.format(job="select cast(:job as bigint) as id"))
_SERVE_NEW = text(
    _SERVE.format(
        job=f"""
        insert into procrastinate_jobs
            (queue_name, task_name, lock, queueing_lock, args, status, worker_id)
        select :own, '{TASK}', :lock, :lock, jsonb_build_object('session', cast(:of as bigint)),
            'doing', id
        from procrastinate_workers
        where id = (select engine from member where name = :own)
        for key share
        on conflict do nothing
        returning id
        """  # noqa: S608 - our own words
    )
)
"""Notes who serves a session, and gives it a job; none if it has one by now."""
_QUEUE = text(f"""
    insert into procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
    values (:queue, '{TASK}', :lock, :lock, jsonb_build_object('session', cast(:of as bigint)))
    on conflict (queueing_lock) where status = 'todo' do nothing
""")  # noqa: S608 - our own words
_KNOWN = text("select lock from procrastinate_jobs where status in ('todo', 'doing')")
_JOB = text("select lock from procrastinate_jobs where id = :job and status = 'doing'")
_WAITING = text("select queue_name from procrastinate_jobs where lock = :lock and status = 'todo'")
_SERVED = text("select 1 from procrastinate_jobs where lock = :lock and status = 'doing'")
_DELETE = text("delete from procrastinate_jobs where id = :job and status = 'doing'")
_AGAIN = text("""
    update procrastinate_jobs
    set status = 'todo', attempts = attempts + 1, worker_id = null, abort_requested = false,
        queue_name = :queue, scheduled_at = now() + make_interval(secs => :seconds)
    where id = :job and status = 'doing'
""")
_SHARE = text(f"""
    update procrastinate_jobs as job set queue_name = '{COMMON}'
    where queue_name = :name and status = 'todo' and not exists (
        select 1 from procrastinate_jobs as other
        where other.lock = job.lock and other.status = 'doing'
    )
""")  # noqa: S608 - our own words
_NOTIFY = text("""
    select pg_notify(
        'procrastinate_queue_v1#' || :queue,
        json_build_object(
            'type', 'job_inserted', 'job_id', 0, 'seconds', cast(:seconds as double precision)
        )::text
    )
""").bindparams(seconds=0.0)
"""Tells members of a job that they can fetch in some seconds."""
_FETCHED = text("""
    select id, lock from procrastinate_jobs where status = 'doing' and worker_id = :engine
""")
_LOST = text("""
    select job.id, job.lock from procrastinate_jobs as job
    where status = 'doing' and not exists (
        select 1 from member where member.engine = job.worker_id
    )
""")
_ORPHANED = text(f"""
    update procrastinate_jobs set queue_name = '{COMMON}'
    where status = 'todo' and queue_name <> '{COMMON}'
        and not exists (select 1 from member where member.name = queue_name)
""")  # noqa: S608 - our own words
_DISMISS = text("delete from procrastinate_workers where id = :engine")


class JobStore:
    """The job port on PostgreSQL."""

    def __init__(self, database: Database, own: Fence) -> None:
        """Store the jobs of the member that `own` names."""
        self._database = database
        self._own = own

    async def employ(self, engine: int) -> None:
        """Note the number under which this member fetches jobs."""
        change = update(member).where(member.c.name == self._own.name).values(engine=engine)
        await self._database.writer.run(lambda connection: connection.execute(change))

    async def queue(self, session_id: int) -> None:
        """Have a session served, best by the member that served it last."""

        def write(connection: Connection) -> None:
            _queue(connection, session_id, _choose_queue(connection, session_id))

        await self._database.writer.run(write)

    async def queue_all(self) -> None:
        """Have every session served that has work and no job."""
        await self._database.writer.run(queue_missing)

    async def claim(
        self,
        next_turn: Turn,
        job: int | None,
        load: Mapping[str, int],
        *,
        total: int | None,
        of_agent: int | None,
    ) -> Claim:
        """Begin to serve a session with its next turn, unless as many run as may run."""
        session_id = next_turn.session
        who = {"own": self._own.name, "of": session_id, "lock": str(session_id)}

        def write(connection: Connection) -> Claim:
            now = connection.execute(_SITUATION, {**who, "turn": next_turn.id}).first()
            if now is None or not now.can_begin:
                return Claim("idle")
            if job is None and now.has_job:
                return Claim("elsewhere")
            members = connection.execute(_MEMBERS).all()
            if job is None and (better := self._find_better(members, now.served_by, load)):
                _queue(connection, session_id, better)
                return Claim("elsewhere")
            loads = [load, *(each.load for each in members if each.name != self._own.name)]
            running = sum(sum(each.values()) for each in loads)
            same = sum(each.get(now.agent, 0) for each in loads)
            is_full = running > (total or running) or same > (of_agent or same)
            # A server that crashed may have forgotten who fetched a job.
            if is_full or now.is_running:
                if job is not None:
                    return Claim("full")
                _queue(connection, session_id, COMMON)
                return Claim("elsewhere")
            words = {**who, "job": job, "load": to_json(dict(load))}
            own = connection.execute(_SERVE_NEW if job is None else _SERVE_JOB, words).scalar()
            if own is None:
                _queue(connection, session_id, COMMON)
                return Claim("elsewhere")
            connection.execute(START, {"of": next_turn.id})
            has_moved = now.served_by not in {None, self._own.name}
            return Claim("granted", own, has_moved=has_moved)

        return await self._database.writer.run(write)

    def _find_better(
        self, members: Sequence[Row[Any, Any, Any]], last: str | None, load: Mapping[str, int]
    ) -> str:
        """Find the queue of who serves a session better: who served it last, or has less to do."""
        others = {
            each.name: each
            for each in members
            if each.name != self._own.name and sum(each.load.values()) < each.slots
        }
        if last == self._own.name:
            return ""
        if last in others:
            return str(last)
        least = min((sum(each.load.values()) for each in others.values()), default=0)
        return COMMON if others and least < sum(load.values()) - 1 else ""

    async def finish(self, job: int, load: Mapping[str, int]) -> None:
        """End a job; if its session has more work, it is queued again."""

        def write(connection: Connection) -> None:
            self._note(connection, load)
            lock = connection.execute(_JOB, {"job": job}).scalar()
            if lock is None:
                return
            waiting = connection.execute(_WAITING, {"lock": lock}).scalar()
            if waiting is None and connection.execute(_IS_READY, {"of": int(lock)}).first():
                _queue_again(connection, job, 0.0)
                return
            connection.execute(_DELETE, {"job": job})
            if waiting is not None:
                # It was not free to run while this one did.
                connection.execute(_NOTIFY, {"queue": waiting})

        await self._database.writer.run(write)

    async def put_back(self, job: int, seconds: float, load: Mapping[str, int]) -> None:
        """Let a job wait for a while, and then for any member."""

        def write(connection: Connection) -> None:
            self._note(connection, load)
            lock = connection.execute(_JOB, {"job": job}).scalar()
            if lock is None:
                return
            _queue_again_or_drop(connection, job, lock, seconds)

        await self._database.writer.run(write)

    async def reclaim(self, known: Collection[int]) -> None:
        """Free the jobs that this member has without knowing: not of these sessions."""

        def write(connection: Connection) -> None:
            own = select(member.c.engine).where(member.c.name == self._own.name)
            engine = connection.execute(own).scalar()
            for job in connection.execute(_FETCHED, {"engine": engine}).all():
                if int(job.lock) not in known:
                    _queue_again_or_drop(connection, job.id, job.lock)

        await self._database.writer.run(write)

    async def share(self) -> None:
        """Let any member have the jobs that wait for this one."""

        def write(connection: Connection) -> None:
            if connection.execute(_SHARE, {"name": self._own.name}).rowcount:
                connection.execute(_NOTIFY, {"queue": COMMON})

        await self._database.writer.run(write)

    def _note(self, connection: Connection, load: Mapping[str, int]) -> None:
        own = update(member).where(member.c.name == self._own.name)
        connection.execute(own.values(load=dict(load)))


def free_jobs(connection: Connection, engines: list[int]) -> None:
    """Free the jobs of members that are gone, whose engines had these numbers."""
    for engine in engines:
        # First: from now on it can fetch nothing.
        connection.execute(_DISMISS, {"engine": engine})
    for job in connection.execute(_LOST).all():
        _queue_again_or_drop(connection, job.id, job.lock)
    connection.execute(_ORPHANED)
    queue_missing(connection)
    connection.execute(_NOTIFY, {"queue": COMMON})


def queue_missing(connection: Connection) -> None:
    """Queue every session that has work and no job."""
    known = set(connection.execute(_KNOWN).scalars())
    for session_id in connection.execute(_READY.order_by(turn.c.id)).scalars().all():
        if str(session_id) not in known:
            _queue(connection, session_id, COMMON)


def _queue(connection: Connection, session_id: int, queue: str) -> None:
    connection.execute(_QUEUE, {"queue": queue, "lock": str(session_id), "of": session_id})


def _queue_again_or_drop(connection: Connection, job: int, lock: str, seconds: float = 0.0) -> None:
    """Let a job wait for any member, unless another one for its session waits already."""
    if connection.execute(_WAITING, {"lock": lock}).first() is not None:
        connection.execute(_DELETE, {"job": job})
    else:
        _queue_again(connection, job, seconds)


def _queue_again(connection: Connection, job: int, seconds: float) -> None:
    connection.execute(_AGAIN, {"job": job, "queue": COMMON, "seconds": seconds})
    connection.execute(_NOTIFY, {"queue": COMMON, "seconds": seconds})


def _choose_queue(connection: Connection, session_id: int) -> str:
    """Choose the queue of the member that served a session last, if it has or gets a free slot."""
    last = session.c.served_by == member.c.name
    row = connection.execute(select(member).join(session, last).where(session.c.id == session_id))
    found = row.first()
    if found is None:
        return COMMON
    has_room = sum(found.load.values()) < found.slots
    if not has_room and connection.execute(_SERVED, {"lock": str(session_id)}).first() is None:
        return COMMON
    return str(found.name)
