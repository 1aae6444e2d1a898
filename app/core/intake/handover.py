"""Tells who can take a place over, and why others cannot."""

from __future__ import annotations

from collections.abc import Mapping

from app.agents.agent import Agent
from app.core.adapters import Adapter
from app.core.delegation.deputies import find_presence
from app.core.roster import Roster
from app.model import wording
from app.model.inbound import Delivery, Effect, Heard


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
