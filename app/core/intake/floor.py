"""Decides who may make an agent act, which agent answers, and who can take a place over.

It fails closed: a platform that cannot be asked means no, or not yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from app.agents.agent import Agent
from app.config.settings import Settings
from app.core.adapters import Adapter, find_presence
from app.core.roster import Roster
from app.errors import SpeakerUnknown
from app.model import wording
from app.model.inbound import Delivery, Effect, Heard, Reason
from app.model.keys import PlaceKey
from app.model.types import PlaceView, Speaker, Untagged

logger = logging.getLogger(__name__)

PLATFORM_SECONDS = 10.0
"""How long a platform may take to identify a person: its slowest deadline for us."""


@dataclass(frozen=True, slots=True)
class Access:
    """The operator's lists, each entry as `service:id`; bots by their platform id."""

    users: Collection[str] = ()
    only_users: bool = False
    bots: Collection[str] = ()

    @classmethod
    def of(cls, settings: Settings) -> Access:
        """Read whom the operator allows or refuses."""
        return cls(
            users=frozenset(f"{who.service}:{who.id}" for who in settings.allowed_users),
            only_users=settings.allowed_users_only,
            bots=frozenset(f"{who.service}:{who.id}" for who in settings.allowed_bots),
        )

    async def refusal(self, adapter: Adapter, speaker: Speaker, place: PlaceKey) -> str | None:
        """Say why a speaker may not trigger the agent; None if they may.

        Raises:
            SpeakerUnknown: it cannot be checked now, and the speaker cannot be told either.
        """
        if speaker.kind != "person":
            listed = f"{place.service}:{speaker.id}" in self.bots
            return None if listed else wording.BOTS_LISTED
        if any(f"{place.service}:{name}" in self.users for name in adapter.listed_names(speaker)):
            return None
        if self.only_users:
            return wording.USERS_LISTED
        try:
            async with asyncio.timeout(PLATFORM_SECONDS):
                return await adapter.refusal(speaker, place)
        except SpeakerUnknown:
            raise
        except Exception:
            logger.exception("%s: access check failed", adapter.service_name)
            return wording.UNCHECKED


@dataclass(frozen=True, slots=True)
class Floor:
    """Who answers, and why."""

    agents: tuple[str, ...]
    reason: Reason


def decide(heard: Heard, place: PlaceView, untagged: Untagged) -> Floor:
    """Give the floor: mention, reply, holder, the only agent, then the setting of the place."""
    if heard.speaker.kind == "agent":
        return Floor((), Reason.FROM_AGENT)
    if heard.mentions:
        return Floor(tuple(dict.fromkeys(heard.mentions)), Reason.MENTIONED)
    if heard.reply_to is not None:
        return Floor((heard.reply_to,), Reason.REPLY)
    if not heard.only_agent_answers:
        return Floor((), Reason.NOT_MENTIONED)
    if place.holder is not None:
        return Floor((place.holder,), Reason.HOLDER)
    if len(place.present) == 1:
        return Floor(place.present, Reason.ONLY_AGENT)
    if not place.present:
        return Floor((), Reason.NONE_HERE)
    return _among_several(place, place.listen or untagged)


def _among_several(place: PlaceView, untagged: Untagged) -> Floor:
    match untagged:
        case "all":
            return Floor(place.present, Reason.ALL_LISTEN)
        case "latest" if place.latest in place.present:
            assert place.latest is not None
            return Floor((place.latest,), Reason.LATEST)
        case _:
            return Floor((), Reason.SEVERAL_HERE)


class Handover:
    """Knows which agents can answer where a message was said."""

    def __init__(self, roster: Roster, adapters: Mapping[str, Adapter]) -> None:
        self._roster = roster
        self._adapters = adapters

    async def absence(self, agent: str, delivery: Delivery, heard: Heard) -> str | None:
        """Say why an agent cannot answer in the place of a message, with the remedy."""
        adapter = find_presence(self._adapters, agent, heard.place.service)
        if adapter is None:
            known = self._roster.find(agent)
            if known is None:
                return wording.NOT_KNOWN
            return wording.NOT_CONNECTED.format(service=heard.place.service, name=known.name)
        if adapter.service_name == delivery.adapter:
            return None
        return await adapter.absence(heard)

    async def list(
        self, delivery: Delivery, heard: Heard, holder: str | None, unknown: str = ""
    ) -> str:
        """List who can take the place over; `unknown` is a name that no agent has."""
        offered = [
            each for each in self._roster.agents.values() if each.visible or each.id == holder
        ]
        lines = [await self._line(each, delivery, heard, holder) for each in offered]
        first = wording.NO_SUCH_AGENT.format(name=unknown) if unknown else wording.WHO_TAKES_OVER
        return "\n".join((first, *lines))

    async def _line(
        self, agent: Agent, delivery: Delivery, heard: Heard, holder: str | None
    ) -> str:
        away = await self.absence(agent.id, delivery, heard)
        found = self._roster.availability(agent.id)
        if away is not None:
            state = wording.NOT_HERE_BECAUSE.format(why=away)
        elif agent.id == holder:
            state = wording.HAS_THE_PLACE.format(state=found.label)
        else:
            state = found.label
        why = f". {found.words}" if found.words and away is None else ""
        return wording.TAKES_OVER.format(agent=agent.title, name=agent.name, state=f"{state}{why}")


def hand_to(agent: str, told: str = "") -> tuple[Effect, ...]:
    """Give the place to an agent; `told` is its title, where the transcript has to say so."""
    return (Effect("hold", value=agent, told=told),)
