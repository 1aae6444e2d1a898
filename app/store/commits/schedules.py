"""Counts how the runs of schedules end, inside the caller's commit; too many failures pause one."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from app.model.inbound import RUN, PauseReason
from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import Entry, TurnState
from app.store.posts import insert_post
from app.store.tables import heard, message, place, schedule
from app.store.transcript import insert_in_place

MOST_FAILURES = 3
"""Failures in a row that pause a schedule: one may be chance, three are not."""


def count_runs(connection: Connection, turn_id: int, state: TurnState, now: float) -> list[int]:
    """Count a turn that ended for the schedules it ran for; return the posts."""
    runs = connection.execute(
        select(message.c.message_id)
        .join(heard, heard.c.message == message.c.id)
        .where(heard.c.turn == turn_id, message.c.message_id.startswith(RUN))
    ).scalars()
    numbers = sorted({int(name.split(":")[1]) for name in runs})
    if state is TurnState.DONE and numbers:
        done = update(schedule).where(schedule.c.id.in_(numbers))
        connection.execute(done.values(failures=0))
    if state is not TurnState.FAILED:
        return []
    return [post for number in numbers for post in count_failure(connection, number, now)]


def count_failure(connection: Connection, schedule_id: int, now: float) -> list[int]:
    """Count a run that failed or was refused; pause its schedule if that is one too many."""
    row = connection.execute(
        update(schedule)
        .where(schedule.c.id == schedule_id)
        .values(failures=schedule.c.failures + 1)
        .returning(*schedule.c)
    ).first()
    if row is None or row.state != "active" or row.failures < MOST_FAILURES:
        return []
    connection.execute(
        update(schedule)
        .where(schedule.c.id == schedule_id)
        .values(state="paused", reason=PauseReason.FAILURES)
    )
    note = Note(NoteCode.SCHEDULE_FAILED, about=str(schedule_id))
    there = select(place.c.id).where(place.c.service == row.service, place.c.name == row.place)
    if (place_id := connection.execute(there).scalar()) is not None:
        insert_in_place(connection, place_id, Entry("notice", note=note), now)
    target = SessionKey(row.service, row.external, row.agent)
    content = PostContent(kind="notice", reason=note)
    key = f"schedule-failed:{schedule_id}:{now!r}"
    return [insert_post(connection, NewPost(key, target, content), now)]
