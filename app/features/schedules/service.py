"""Makes, lists and changes schedules, and makes a delivery of each run when it is due.

Who may make one was checked before, and a run is checked again when it is due. A run and the next
due time are one commit, so a crash neither loses nor repeats one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from uuid import uuid4

from typing_extensions import override

from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.features.part import Part
from app.features.schedules import wording
from app.features.schedules.model import (
    Agreed,
    NewSchedule,
    Schedule,
    ScheduleCommand,
    find_due,
    find_next,
    first_times,
    read,
    split,
)
from app.features.schedules.store import ScheduleStore, parse, run_name, to_delivery
from app.model import wording as general
from app.model.inbound import RUN, Delivery, Heard, PauseReason
from app.model.keys import PlaceKey, SessionKey
from app.model.types import TurnRef
from app.model.updates import AskRequest
from app.retry import persist
from app.signals import Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 60.0
"""The longest sleep: a machine that was suspended, or whose clock was set, is soon on time."""
AGAIN_SECONDS = 60.0
"""Pause after a failure that has no name."""
MOST = 10
"""Schedules of one agent in one place: enough for a team, few enough to read."""

Change = Literal["remove", "pause", "resume"]


class Schedules(Part):
    """The schedules of all places."""

    command_names = ("schedule",)
    command_help = wording.HELP
    ask_kind = "schedule"

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.zone = runtime.zone
        """That of rules without one."""
        self._store = runtime.stores.open(ScheduleStore)
        self._clock = runtime.clock
        self._loop = Scheduler(runtime, self._store)
        self._tasks = Tasks("schedules agreed to")
        self._making = asyncio.Lock()

    @override
    def start(self) -> None:
        """Make the schedules that people agreed to, and run those that are due."""
        self.on_answered()
        self._loop.start()

    @override
    async def close(self) -> None:
        """Stop; what is left is made and run at the next start."""
        await self._loop.close()
        await self._tasks.close()

    def all(self) -> Sequence[Schedule]:
        """List every schedule, in the order in which they were made."""
        return self._store.all()

    def in_place(self, place: PlaceKey) -> Sequence[Schedule]:
        """List the schedules of a place."""
        return [each for each in self._store.all() if each.place == place]

    def made_by(self, origin: str) -> Schedule | None:
        """Return the schedule that a message made."""
        return self._store.made_by(origin)

    def find(self, number: int) -> Schedule:
        """Return a schedule.

        Raises:
            NotFound: there is none of this number.
        """
        found = self._store.get(number)
        if found is None:
            raise NotFound("schedule", number)
        return found

    def check(self, expression: str, zone: str) -> tuple[float, ...]:
        """Return the next times of a rule; a zone that is empty is the bridge's own.

        Raises:
            Conflict: it makes no sense, never happens, or is too often.
        """
        return first_times(expression, zone or self.zone, self._clock.now())

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> ScheduleCommand | None:
        return read(line)

    @override
    def parse(self, delivery: Delivery) -> Heard | None:
        return parse(delivery)

    @override
    def on_answered(self) -> None:
        self._tasks.start(self.make_agreed(), name="agreed")

    @override
    async def obey(self, command: object, heard: Heard, agents: Sequence[str]) -> str:
        assert isinstance(command, ScheduleCommand)
        match command:
            case ScheduleCommand(act="help"):
                return wording.how()
            case ScheduleCommand(act="list"):
                here = self.in_place(heard.place)
                return wording.listed(
                    [(each, self.runtime.agents.title(each.key.agent)) for each in here]
                )
            case ScheduleCommand(act="create"):
                return await self._create(command, heard, agents)
        try:
            schedule = self.find(command.number)
        except NotFound:
            schedule = None
        if schedule is None or schedule.place != heard.place:
            return wording.UNKNOWN.format(number=command.number)
        match command.act:
            case "remove" | "pause" | "resume":
                return await self._change(schedule, command.act)
            case _:
                await self.run(schedule, name=f"{RUN}{schedule.id}:{heard.message_id}")
                return wording.RUNS.format(number=schedule.id)

    async def change(self, number: int, change: Change, *, by: str) -> None:
        """Change a schedule on behalf of the operator, and tell its place.

        Raises:
            NotFound: there is none of this number.
            Conflict: it has no further times.
        """
        schedule = self.find(number)
        words = await self._change(schedule, change)
        words = wording.BY.format(by=by, words=words)
        await self._tell(schedule.key, schedule.place, words, f"schedule:{number}:{uuid4().hex}")

    async def propose(
        self,
        agent: str,
        ref: TurnRef,
        when: str,
        words: str,
        *,
        present: Callable[[AskRequest], AskRequest],
        seconds: float,
    ) -> tuple[float, ...]:
        """Ask people whether an agent gets a schedule; returns when it would run.

        `when` is an expression, perhaps with a zone; `present` makes the ask fit to be shown.

        Raises:
            Conflict: the rule makes no sense, or never happens, or is too often.
        """
        expression, zone = split(when)
        zone = zone or self.zone
        times = self.check(expression, zone)
        name = self.runtime.agents.title(agent)
        request = present(wording.proposal(name, expression, zone, words, times))
        deadline = self._clock.now() + seconds
        posts = await persist(self._clock, self._store.propose, ref, request, deadline=deadline)
        self.runtime.outbox.send(*posts)
        self.runtime.feed.notify(ref.session)
        return times

    async def make_agreed(self) -> None:
        """Make the schedules that people agreed to; safe to repeat."""
        async with self._making:
            for agreed in await self._store.agreed():
                words = await self._make(agreed)
                await self._tell(agreed.key, agreed.place, words, f"agreed:{agreed.ask}")
                await persist(self._clock, self._store.settled, agreed.ask)

    async def _make(self, agreed: Agreed) -> str:
        expression, zone = split(agreed.rule)
        try:
            times = self.check(expression, zone)
        except Conflict as error:
            return wording.refused(str(error))
        new = NewSchedule(
            key=agreed.key,
            place=agreed.place,
            expression=expression,
            zone=zone or self.zone,
            words=agreed.words,
            creator=agreed.creator,
            due_at=times[0],
            origin=f"ask:{agreed.ask}",
        )
        return await self._store_new(new, times)

    async def _tell(self, key: SessionKey, place: PlaceKey, words: str, name: str) -> None:
        post = await persist(self._clock, self._store.tell, key, place, words, name=name)
        self.runtime.outbox.send(post)
        self.runtime.feed.notify_place(place)

    async def run(self, schedule: Schedule, *, name: str = "") -> None:
        """Run a schedule now; its due times stay as they are."""
        name = name or f"{RUN}{schedule.id}:{uuid4().hex}"
        delivery = to_delivery(schedule, name, missed=0, now=self._clock.now())
        await persist(self._clock, self._store.run, delivery)
        self._loop.change(schedule.key.adapter)

    async def _create(self, command: ScheduleCommand, heard: Heard, agents: Sequence[str]) -> str:
        """Make a schedule for each agent that a message is meant for."""
        if not agents:
            return general.WHICH_AGENT
        try:
            times = self.check(command.expression, command.zone)
        except Conflict as error:
            return wording.refused(str(error))
        if not command.words:
            return wording.refused(wording.NO_WORDS)
        if heard.speaker.kind != "person":
            return wording.refused(wording.FROM_BOT)
        return "\n".join([await self._add(command, heard, each, times) for each in agents])

    async def _add(
        self, command: ScheduleCommand, heard: Heard, agent: str, times: Sequence[float]
    ) -> str:
        new = NewSchedule(
            key=SessionKey(heard.place.service, heard.external, agent),
            place=heard.place,
            expression=command.expression,
            zone=command.zone or self.zone,
            words=command.words,
            creator=heard.speaker,
            due_at=times[0],
            origin=origin_of(heard.place, heard.message_id, agent),
        )
        return await self._store_new(new, times)

    async def _store_new(self, new: NewSchedule, times: Sequence[float]) -> str:
        """Make a schedule; returns what to say about it."""
        name = self.runtime.agents.title(new.key.agent)
        made = await persist(self._clock, self._store.add, new, most=MOST)
        if made is None:
            return wording.refused(wording.TOO_MANY.format(agent=name, most=MOST))
        self._loop.change(made.key.adapter)
        return wording.made(made, name, times)

    async def _change(self, schedule: Schedule, change: Change) -> str:
        match change:
            case "remove":
                await persist(self._clock, self._store.remove, schedule.id)
                words = wording.REMOVED.format(number=schedule.id)
            case "pause":
                await persist(self._clock, self._store.pause, schedule.id, PauseReason.PERSON)
                words = wording.PAUSED.format(number=schedule.id)
            case "resume":
                due = find_next(schedule, self._clock.now())
                await persist(self._clock, self._store.resume, schedule.id, due)
                words = wording.resumed(self.find(schedule.id))
        self._loop.change(schedule.key.adapter)
        return words


def origin_of(place: PlaceKey, message_id: str, agent: str) -> str:
    """Name the message that asks an agent's schedule of a place."""
    return f"{place}:{message_id}:{agent}"


class Scheduler:
    """Runs schedules when they are due."""

    def __init__(self, runtime: Runtime, store: ScheduleStore) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = runtime.clock
        self._wake = asyncio.Event()
        self._tasks = Tasks("schedules")
        runtime.signals.on(Topic.SCHEDULES, lambda _facts: self._wake.set())
        runtime.signals.on_sweep(self._wake.set)

    def start(self) -> None:
        """Begin to wait for due times; what was due meanwhile runs at once."""
        self._tasks.start(self._work(), name="due times")

    def change(self, adapter: str) -> None:
        """Look at the due times again, and at the deliveries of an adapter."""
        self._wake.set()
        self._runtime.signals.send(Topic.SCHEDULES)
        self._runtime.intake.wake(adapter)

    async def close(self) -> None:
        """Run nothing more; what is due then runs at the next start."""
        await self._tasks.close()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                for schedule in self._store.due(self._clock.now()):
                    await self._begin(schedule)
                await self._rest()
            except Exception:
                logger.exception("schedules cannot be run")
                await self._clock.sleep(AGAIN_SECONDS)

    async def _begin(self, schedule: Schedule) -> None:
        """Make the run that is due; one that can never run again is paused."""
        adapter, now = schedule.key.adapter, self._clock.now()
        if adapter not in self._runtime.adapters:
            await persist(self._clock, self._store.pause, schedule.id, PauseReason.ABSENT)
            return
        try:
            due = find_due(schedule, now)
        except Conflict as error:
            logger.warning("schedule %d is paused: %s", schedule.id, error)
            await persist(self._clock, self._store.pause, schedule.id, PauseReason.NO_TIMES)
            return
        name = run_name(schedule.id, due.at)
        delivery = to_delivery(schedule, name, missed=due.missed, now=now)
        if await persist(self._clock, self._store.begin, schedule, due.next_at, delivery):
            self._runtime.intake.wake(adapter)

    async def _rest(self) -> None:
        """Wait for the next due time, or until something changes."""
        due = self._store.next_due()
        if due is None:
            await self._wake.wait()
            return
        seconds = min(max(due - self._clock.now(), 0.0), LONGEST_SECONDS)
        alarm = self._tasks.start(self._ring(seconds), name="alarm")
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._wake.set()
