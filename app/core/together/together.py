"""Has agents work together as people ask: begins what a command says, and goes on as turns end.

One task per group takes the steps that are due. What there is to do is read from the rows, so that
a start goes on with every group that is not over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, get_args

from typing_extensions import override

from app.core.feed import Feed
from app.core.hooks import Hook
from app.core.together import command, wording
from app.core.together.command import Wish
from app.core.together.group import Act, Grouping
from app.core.together.panel import Panel
from app.core.together.race import Race
from app.core.together.review_loop import ReviewLoop
from app.errors import Conflict
from app.model.delegation import Kind
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.types import Session
from app.signals import ALONE, Facts, Signals, Topic
from app.tasks import Tasks

LOOK_SECONDS: Final = 60.0
"""How often a group is looked at although nothing was reported: a report may be lost."""


class Together(Hook):
    """Everything that several agents do together."""

    command_names = get_args(command.Act)

    def __init__(
        self,
        grouping: Grouping,
        feed: Feed,
        *,
        review: ReviewLoop,
        panel: Panel,
        race: Race,
        signals: Signals = ALONE,
    ) -> None:
        self._grouping = grouping
        self._feed = feed
        self._review = review
        self._panel = panel
        self._race = race
        self._acts: Mapping[Kind, Act] = {"review": review, "panel": panel, "race": race}
        self._tasks = Tasks("together")
        self._followed: set[str] = set()
        self._signals = signals
        signals.on(Topic.GROUP, self._hear)
        signals.on_sweep(self._look_again)

    def start(self) -> None:
        """Go on with what an earlier run of the bridge began."""
        for group in self._grouping.groups.unfinished():
            self.follow(group)

    async def close(self) -> None:
        """Take no more steps; the next start goes on."""
        await self._tasks.close()

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> Wish | None:
        return command.read(line, agents)

    @override
    async def obey(self, wish: object, heard: Heard, agents: Sequence[str]) -> str:
        """Carry out a person's command in a place; returns what to say. Repeating changes nothing.

        `agents` are those that the message is meant for.
        """
        assert isinstance(wish, Wish)
        if heard.speaker.kind != "person":
            return wording.NO_PERSON
        group = f"{wish.act}:{heard.place}:{heard.message_id}"
        try:
            words = await self._begin(group, wish, heard, agents)
        except Conflict as error:
            return str(error)
        self.follow(group)
        return words

    @override
    async def stop(self, place: PlaceKey) -> bool:
        """Stop what people in a place had agents do together; False if there is nothing."""
        running = self._grouping.groups.running(place)
        if running:
            await self._grouping.delegations.stop(running)
        return bool(running)

    async def review(self, author: Session, turn: int, reviewer: str, notes: str) -> str:
        """Have the work of an agent reviewed on its own wish; returns what to say.

        Raises:
            Conflict: it cannot be.
        """
        group = f"review:{author.id}:{turn}"
        person = self._grouping.person_of(turn)
        words = await self._review.begin(group, author, reviewer, person, turn=turn, notes=notes)
        self.follow(group)
        return words

    async def _begin(self, group: str, wish: Wish, heard: Heard, agents: Sequence[str]) -> str:
        person, service = heard.speaker, heard.place.service
        if wish.act == "review":
            [reviewer] = wish.agents
            here = self._grouping.sessions.in_place(heard.place)
            author = self._review.find_author(here, reviewer)
            return await self._review.begin(group, author, reviewer, person, service=service)
        act = self._panel if wish.act == "panel" else self._race
        present = [each.key.agent for each in self._grouping.sessions.in_place(heard.place)]
        named = [each for each in wish.agents if each in present]
        host = next(iter((*named, *agents, *present, *wish.agents)))
        session = await self._grouping.enter(heard, host)
        return await act.begin(group, session, wish.agents, person, wish.words, service=service)

    def _hear(self, facts: Facts) -> None:
        if self._signals.is_leader:
            self.follow(facts["group"])

    def _look_again(self) -> None:
        if self._signals.is_leader:
            self.start()

    def follow(self, group: str) -> None:
        """Take the steps of a group as they become due, in a task; only the leader takes them."""
        if not self._signals.is_leader:
            self._signals.send(Topic.GROUP, group=group)
        elif group not in self._followed:
            self._followed.add(group)
            self._tasks.start(self._follow(group), name=group)

    async def _follow(self, group: str) -> None:
        try:
            while rows := self._grouping.rows.in_group(group):
                sessions = {each for row in rows for each in (row.session, row.root_session)}
                with self._feed.watching(*sessions) as changed:
                    if await self._acts[rows[0].kind].advance(group, rows):
                        return
                    if len(self._grouping.rows.in_group(group)) == len(rows):
                        await self._wait(changed)
        finally:
            self._followed.discard(group)

    async def _wait(self, changed: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await changed.wait()
