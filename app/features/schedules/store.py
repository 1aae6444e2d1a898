"""Stores schedules, and converts their runs to deliveries and back.

The id of a run names its schedule and its due time: the inbox takes each of them once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from app.errors import DeliveryUnreadable
from app.features.schedules import wording
from app.features.schedules.model import Agreed, NewSchedule, Schedule
from app.model.asks import TAKE
from app.model.inbound import RUN, Delivery, Heard, PauseReason
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import Entry, Speaker, TurnRef
from app.model.updates import AskRequest
from app.store.commits.asks import open_ask
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.inbox import insert_delivery
from app.store.posts import insert_post
from app.store.tables import (
    ASK_IS_OPEN,
    ask,
    heard,
    is_place,
    message,
    place,
    post,
    schedule,
    surface,
    transcript,
    turn,
)
from app.store.transcript import insert_in_place
from app.store.values import read_row

_IS_ACTIVE = schedule.c.state == "active"
_PROPOSED = ask.c.kind == "schedule"


class ScheduleStore(Store):
    """The schedule port."""

    def all(self) -> Sequence[Schedule]:
        """List every schedule, in the order in which they were made."""
        return self._read(select(schedule).order_by(schedule.c.id))

    def get(self, schedule_id: int) -> Schedule | None:
        """Read one schedule."""
        return next(iter(self._read(select(schedule).where(schedule.c.id == schedule_id))), None)

    def made_by(self, origin: str) -> Schedule | None:
        """Read the schedule that a message made."""
        return next(iter(self._read(select(schedule).where(schedule.c.origin == origin))), None)

    def due(self, now: float) -> Sequence[Schedule]:
        """List the active schedules whose time has come, the longest due first."""
        query = select(schedule).where(_IS_ACTIVE, schedule.c.due_at <= now)
        return self._read(query.order_by(schedule.c.due_at, schedule.c.id))

    def next_due(self) -> float | None:
        """Tell when the next active schedule is due."""
        row = self._database.one(select(func.min(schedule.c.due_at).label("at")).where(_IS_ACTIVE))
        return None if row is None else row.at

    @write
    def add(self, connection: Connection, new: NewSchedule, *, most: int) -> Schedule | None:
        """Make a schedule, or return the one of the same origin; None if there are too many."""
        same = select(schedule).where(schedule.c.origin == new.origin)
        if (row := connection.execute(same).first()) is not None:
            return _schedule_of(row)
        there = connection.execute(
            select(func.count()).where(
                schedule.c.service == new.place.service,
                schedule.c.place == new.place.name,
                schedule.c.agent == new.key.agent,
            )
        ).scalar_one()
        if there >= most:
            return None
        added = insert(schedule).values({**_row_of(new), "created_at": self._now()})
        return _schedule_of(connection.execute(added.returning(*schedule.c)).one())

    @write
    def begin(self, connection: Connection, due: Schedule, next_at: float, run: Delivery) -> bool:
        """Store the run that is due and move the due time."""
        there = select(place.c.id).where(is_place(due.place))
        if connection.execute(there).first() is None:
            connection.execute(delete(schedule).where(schedule.c.id == due.id))
            return False
        moved = connection.execute(
            update(schedule)
            .where(schedule.c.id == due.id, _IS_ACTIVE, schedule.c.due_at == due.due_at)
            .values(due_at=next_at)
        )
        if moved.rowcount:
            insert_delivery(connection, run)
        return bool(moved.rowcount)

    @write
    def run(self, connection: Connection, run: Delivery) -> None:
        """Store a run besides the due times."""
        insert_delivery(connection, run)

    async def remove(self, schedule_id: int) -> None:
        """End a schedule."""
        await self._write(delete(schedule).where(schedule.c.id == schedule_id))

    async def pause(self, schedule_id: int, reason: PauseReason) -> None:
        """Pause a schedule."""
        change = update(schedule).where(schedule.c.id == schedule_id, _IS_ACTIVE)
        await self._write(change.values(state="paused", reason=reason))

    async def resume(self, schedule_id: int, due_at: float) -> None:
        """Let a schedule run again from a time on, and forget its failures."""
        change = update(schedule).where(schedule.c.id == schedule_id, schedule.c.state == "paused")
        await self._write(change.values(state="active", reason="", failures=0, due_at=due_at))

    @write
    def tell(
        self, connection: Connection, key: SessionKey, where: PlaceKey, words: str, *, name: str
    ) -> int:
        """Tell a place something about a schedule, once; return the post to send."""
        now = self._now()
        there = select(place.c.id).where(is_place(where))
        told = connection.execute(select(post.c.id).where(post.c.key == name)).scalar()
        place_id = None if told else connection.execute(there).scalar()
        if place_id is not None:
            insert_in_place(connection, place_id, Entry("notice", words), now)
        content = PostContent(kind="notice", note=words)
        return insert_post(connection, NewPost(name, key, content), now)

    @write
    def propose(
        self, connection: Connection, ref: TurnRef, request: AskRequest, *, deadline: float
    ) -> Sequence[int]:
        """Ask people whether an agent gets a schedule; return the posts to send."""
        same = select(ask.c.id).where(
            ask.c.session == ref.session,
            ask.c.call == request.call,
            ask.c.subject == request.subject,
            _PROPOSED,
            ASK_IS_OPEN,
        )
        if connection.execute(same).first() is not None:
            return ()
        now = self._now()
        return (open_ask(connection, request, ref, now, deadline=deadline, adrift=True)[1],)

    async def agreed(self) -> Sequence[Agreed]:
        """List the proposals that people agreed to and that are not settled."""
        first = select(func.min(heard.c.message)).where(heard.c.turn == ask.c.turn)
        asker = first.correlate(ask).scalar_subquery()
        rows = await self._database.all(
            select(ask, surface.c.service, surface.c.external, surface.c.agent)
            .add_columns(place.c.name, message.c.speaker_id, transcript.c.speaker.label("asked_by"))
            .join(turn, turn.c.id == ask.c.turn)
            .join(surface, surface.c.id == turn.c.surface)
            .join(place, place.c.id == surface.c.place)
            .outerjoin(message, message.c.id == asker)
            .outerjoin(transcript, transcript.c.id == asker)
            .where(_PROPOSED, ask.c.state == "answered", ask.c.adrift.is_(True))
            .where(ask.c.answer == TAKE)
            .order_by(ask.c.id)
        )
        return [_agreed_of(row) for row in rows]

    async def settled(self, ask_id: int) -> None:
        """Record that a proposal was made a schedule, or refused."""
        await self._write(update(ask).where(ask.c.id == ask_id).values(adrift=False))

    @write
    def _write(self, connection: Connection, statement: Any) -> None:
        connection.execute(statement)

    def _read(self, query: Any) -> list[Schedule]:
        return [_schedule_of(row) for row in self._database.some(query)]


def _agreed_of(row: Row[Any]) -> Agreed:
    # The page does not say who answered there: the runs have the rights of the person who asked.
    creator = (row.speaker, row.answered_by) if row.speaker else (row.speaker_id, row.asked_by)
    return Agreed(
        ask=row.id,
        key=SessionKey(row.service, row.external, row.agent),
        place=PlaceKey(row.service, row.name),
        rule=row.call,
        words=row.subject,
        creator=Speaker(*creator),
    )


def _row_of(new: NewSchedule) -> dict[str, Any]:
    return {
        "agent": new.key.agent,
        "service": new.key.service,
        "external": new.key.external,
        "place": new.place.name,
        "expression": new.expression,
        "zone": new.zone,
        "words": new.words,
        "creator_id": new.creator.id,
        "creator_name": new.creator.name,
        "creator_number": new.creator.number,
        "due_at": new.due_at,
        "origin": new.origin,
    }


def _schedule_of(row: Row[Any]) -> Schedule:
    return read_row(
        Schedule,
        row,
        key=SessionKey(row.service, row.external, row.agent),
        place=PlaceKey(row.service, row.place),
        creator=Speaker(row.creator_id, row.creator_name, number=row.creator_number),
    )


HEADER = "agent-bridge-schedule"
"""Marks the delivery of a run: no adapter stores a header of this name."""


def run_name(schedule: int, due: float) -> str:
    """Name the run of a schedule at its due time."""
    return f"{RUN}{schedule}:{due:.0f}"


def to_delivery(schedule: Schedule, name: str, *, missed: int, now: float) -> Delivery:
    """Make a run a delivery of its agent's adapter."""
    creator = schedule.creator
    body = {
        "place": schedule.place.name,
        "external": schedule.key.external,
        "words": schedule.words,
        "creator": {"id": creator.id, "name": creator.name, "number": creator.number},
        "rule": f"{schedule.expression} {schedule.zone}",
        "missed": missed,
    }
    return Delivery(
        adapter=schedule.key.adapter,
        delivery_id=name,
        signature=None,
        headers={HEADER: str(schedule.id)},
        body=json.dumps(body).encode(),
        received_at=now,
    )


def parse(delivery: Delivery) -> Heard | None:
    """Read the delivery of a run; None if it is another delivery.

    Raises:
        DeliveryUnreadable: this bridge did not write it.
    """
    number = delivery.headers.get(HEADER)
    if number is None:
        return None
    service, _, agent = delivery.adapter.partition(":")
    try:
        body = json.loads(delivery.body)
        creator = Speaker(**body["creator"])
        said = (int(number), creator.name, body["rule"], body["missed"])
        return Heard(
            place=PlaceKey(service, body["place"]),
            external=body["external"],
            message_id=delivery.delivery_id,
            speaker=creator,
            text=body["words"],
            spoken="",
            mentions=(agent,),
            pointed=wording.pointed(*said),
            schedule=int(number),
            announcement=wording.announcement(*said, words=body["words"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DeliveryUnreadable(f"not a run of a schedule: {error}") from error
