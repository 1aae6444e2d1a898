"""Finds what became of a message, and asks the platforms about one that never arrived."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from typing_extensions import override

from app.core.adapters import Adapter
from app.core.runtime import Runtime
from app.errors import PostError, ServiceRefused
from app.features.outcomes import wording
from app.features.outcomes.store import OutcomeStore
from app.features.outcomes.wording import Explanation
from app.features.part import Part
from app.model.inbound import DeliveryLine, Heard
from app.model.keys import PlaceKey
from app.model.outcomes import Obstacle, Sighting, TracedMessage
from app.model.types import Session, Turn, TurnState

logger = logging.getLogger(__name__)

LOOK_UP_SECONDS: Final = 10.0
"""How long a platform may take to say what it knows of a message: a person waits."""
UNSETTLED_SECONDS: Final = 60.0
"""After which a message that is not decided on is worth a look."""
_ORDER: Final = (None, *Obstacle)
"""Of several apps, the one is told about that is least kept from hearing."""


@dataclass(frozen=True, slots=True)
class WhyCommand:
    """The command `why`, perhaps with the link or the id of a message."""

    text: str = ""


class Outcomes(Part):
    """The outcomes of all messages."""

    command_names = ("why",)
    command_help = wording.HELP

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.store = runtime.stores.open(OutcomeStore)
        """Reads what became of messages."""

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> WhyCommand | None:
        first, _, rest = line.strip().partition(" ")
        rest = rest.strip().strip("<>")
        is_whole = first.casefold() == "why" and " " not in rest
        return WhyCommand(rest) if is_whole and (not rest or "://" in rest) else None

    @override
    async def obey(self, command: object, heard: Heard, agents: Sequence[str]) -> str:
        assert isinstance(command, WhyCommand)
        if command.text:
            found = await self.explain(command.text, only=heard.place)
        else:
            message = await self.store.before(heard.place, heard.message_id)
            if message is None:
                return wording.NOTHING_BEFORE
            found = self._explain(message)
        return "\n".join(found.lines(self.clock_time))

    async def explain(self, text: str, *, only: PlaceKey | None = None) -> Explanation:
        """Say what became of a message, by its link or its id.

        `only` is the place where it is asked: messages of other places are not for its people.
        """
        text = text.strip()
        traced = await self.store.find(text) or await self._find_on_page(text)
        if traced is None:
            sightings = await self._look_up(text)
            traced = await self._find_seen(sightings)
        else:
            sightings = ()
        if traced is not None and only in {None, traced.place}:
            return self._explain(traced)
        if (sightings and only is None) or _is_in(sightings, only):
            return await self._explain_absence(sightings)
        return Explanation("unknown", wording.UNKNOWN_MESSAGE, wording.COPY_LINK)

    async def waiting(self) -> Sequence[DeliveryLine]:
        """List what arrived more than a minute ago and is not decided on, oldest first."""
        return await self.store.undecided(self.runtime.clock.now() - UNSETTLED_SECONDS)

    @override
    async def on_decided(self, heard: Heard) -> None:
        """Count a message that became part of no turn."""
        message = await self.store.at(heard.place, heard.message_id)
        if message is not None:
            self._count(message)

    @override
    async def on_end(self, session: Session, turn: Turn, state: TurnState) -> None:
        """Count the messages of a turn, and measure how long people waited for it."""
        for message in await self.store.of_turn(turn.id):
            self._count(message)
            metrics, service = self.runtime.metrics, message.place.service
            if message.first_sign_seconds is not None:
                metrics.observe("first_sign_seconds", message.first_sign_seconds, service=service)
            if message.answer_seconds is not None:
                metrics.observe("answer_seconds", message.answer_seconds, service=service)

    def _count(self, message: TracedMessage) -> None:
        adapter = message.adapter or message.place.service
        self.runtime.metrics.count("messages", adapter=adapter, outcome=message.outcome)

    def clock_time(self, at: float) -> str:
        """Write a time as people of the installation read it."""
        return f"{datetime.fromtimestamp(at, ZoneInfo(self.runtime.zone)):%Y-%m-%d %H:%M:%S}"

    def _explain(self, message: TracedMessage) -> Explanation:
        return wording.explain(message, self.runtime.agents.title)

    async def _find_on_page(self, text: str) -> TracedMessage | None:
        """Find the last message of a thread by the address of its page."""
        parts = urlsplit(text).path.split("/", 3)
        if parts[:2] != ["", "t"] or len(parts) < 4:
            return None
        return await self.store.before(PlaceKey(parts[2], unquote(parts[3])), "")

    async def _look_up(self, link: str) -> Sequence[tuple[Adapter, Sighting]]:
        """Ask every app whose platform the link belongs to."""
        adapters = list(self.runtime.adapters.values())
        found = await asyncio.gather(*(self._ask(each, link) for each in adapters))
        return [(adapter, seen) for adapter, seen in zip(adapters, found, strict=True) if seen]

    async def _ask(self, adapter: Adapter, link: str) -> Sighting | None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                seen = await adapter.look_up(link)
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("%s cannot look up a message: %s", adapter.service_name, error)
            return Sighting(obstacle=Obstacle.UNKNOWN, about=str(error) or "it did not answer")
        if seen is not None and seen.obstacle is None and (trouble := adapter.trouble):
            return replace(seen, obstacle=Obstacle.NOT_LISTENING, about=trouble)
        return seen

    async def _find_seen(
        self, sightings: Sequence[tuple[Adapter, Sighting]]
    ) -> TracedMessage | None:
        for _, seen in sightings:
            if seen.place is not None and seen.message_id:
                traced = await self.store.at(seen.place, seen.message_id)
                if traced is not None:
                    return traced
        return None

    async def _explain_absence(self, sightings: Sequence[tuple[Adapter, Sighting]]) -> Explanation:
        adapter, seen = min(sightings, key=lambda each: _ORDER.index(each[1].obstacle))
        service = adapter.service_name.partition(":")[0]
        if seen.obstacle in {None, Obstacle.NOT_LISTENING} and seen.sent_at is not None:
            ended_since = await self.runtime.stores.gaps.since(seen.sent_at, adapter.service_name)
            for gap in ended_since:
                if gap.began <= seen.sent_at:
                    return wording.explain_gap(seen, gap, self.clock_time)
        agent = self.runtime.agents.title(adapter.agent)
        name = self.runtime.agents.name(adapter.agent)
        return wording.explain_sighting(seen, service=service, agent=agent, name=name)


def _is_in(sightings: Sequence[tuple[Adapter, Sighting]], place: PlaceKey | None) -> bool:
    return any(seen.place == place for _, seen in sightings)
