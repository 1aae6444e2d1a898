"""Decides who may ask whom, for every way to ask.

The rights of the one who asks do not travel: the person for whom it all began must be allowed to
use the agent that is asked, which then works under its own lists and policy. People reach agents
that are connected to their service, and an agent reaches through another one nothing that it cannot
reach itself. Only the operator allows more, by a name in `agents_allow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from app.agents.agent import Agent, find_excess
from app.core.adapters import find_presence
from app.core.intake.floor import Access
from app.core.runtime import Runtime
from app.errors import Conflict, NotFound, SpeakerUnknown
from app.features.delegation import wording
from app.features.delegation.store import DelegationStore
from app.features.delegation.wording import Objection
from app.model.agents import Scope
from app.model.delegation import DelegationLimits
from app.model.keys import SessionKey
from app.model.types import Session, Speaker, Turn


class Rights:
    """Who may ask whom, and how far."""

    def __init__(self, runtime: Runtime, store: DelegationStore) -> None:
        self._runtime = runtime
        self._store = store
        self._roster = runtime.roster
        self._turns = runtime.stores.turns

    @property
    def off(self) -> str:
        """Why no agent may ask another one here; empty if they may."""
        return "" if self.limits.depth else wording.OFF

    @property
    def limits(self) -> DelegationLimits:
        """How far agents may go among themselves, as it is set now."""
        settings = self._runtime.configuration.settings
        return DelegationLimits(
            depth=settings.delegation_depth,
            per_turn=settings.delegations_per_turn,
            per_tree=settings.delegations_per_tree,
            per_hour=settings.delegations_per_hour,
            seconds=60.0 * settings.delegation_minutes,
            usd=settings.delegation_usd,
        )

    def colleagues(self, agent: str, turn: int) -> Sequence[Agent]:
        """List the agents that an agent sees and may ask in a turn."""
        cause, known = self._store.of_turn(turn), self._turns.turn(turn)
        depth = 0 if cause is None else cause.depth
        if known is None or depth >= self.limits.depth:
            return ()
        service = self._origin(known).service
        gone = self._roster.removed()
        return [
            each
            for each in self._roster.agents.values()
            if each.visible and each.id != agent and each.id not in gone
            if not self._object_to(each, service, agent=agent, by="agent")
        ]

    def find(self, agent: str, turn: Turn, name: str, *, itself: bool = False) -> Agent:
        """Find an agent that another one may ask in a turn, by its name or what people call it.

        `itself` allows it to name itself, for a further session of its own.

        Raises:
            Conflict: it may not, there is none, or it cannot work.
        """
        called = self._roster.called().get(name.casefold())
        if called in self._roster.removed():
            raise Conflict(wording.REMOVED.format(name=name))
        found = None if called is None else self._roster.find(called)
        service = self._origin(turn).service
        if found is None:
            raise Conflict(wording.NO_AGENT.format(name=name))
        if objection := self._object_to(found, service, agent=agent, by="agent"):
            raise Conflict(
                wording.OBJECTIONS[objection].format(
                    name=name if objection == "unlisted" else found.name,
                    agent=found.title,
                    service=service,
                    asking=self._roster.name(agent),
                )
            )
        if found.id == agent and not itself:
            raise Conflict(wording.SELF)
        availability = self._roster.availability(found.id)
        if availability.state != "ready":
            raise Conflict(wording.CANNOT_WORK.format(agent=found.title, why=availability.words))
        return found

    def check_present(self, agent: Agent, service: str, host: Session) -> None:
        """Check that people of a service may have an agent work with the one they talk to.

        Raises:
            Conflict: it is not connected there, and the operator did not allow it by name.
        """
        talks = host.key.agent
        if self._object_to(agent, service, agent=talks, by="person"):
            raise Conflict(
                wording.NOT_PRESENT.format(
                    agent=agent.title,
                    service=service,
                    name=agent.name,
                    host=self._roster.name(talks),
                )
            )

    def _object_to(
        self, asked: Agent, service: str, *, agent: str, by: Literal["agent", "person"]
    ) -> Objection:
        """Say why an agent may not be asked for people of a service; empty if it may.

        `agent` is the one that asks or, if a person does, the one they talk to: its lists count.
        """
        agents = self._runtime.agents
        asking = agents.get(agent)
        scope = Scope(agents_allow=()) if asking is None else asking.scope
        if by == "agent" and not scope.allows_agent(asked.name):
            return "unlisted"
        if scope.names_agent(asked.name) or (by == "agent" and asked.id == agent):
            return ""
        if find_presence(self._runtime.adapters, asked.id, service) is None:
            return "absent"
        if by == "person" or asking is None:
            return ""
        return find_excess(asking.bounds, agents[asked.id].bounds)

    async def check(self, agent: Agent, people: Sequence[Speaker], root: Session) -> None:
        """Check that people may use an agent in the place where it all began.

        Raises:
            Conflict: one of them may not, or it is not known who they are.
        """
        if not people:
            raise Conflict(wording.NO_PERSON)
        own = find_presence(self._runtime.adapters, agent.id, root.place.service)
        adapter = own or self._runtime.adapters.get(root.key.adapter)
        access = Access.of(self._runtime.configuration.settings)
        for person in people:
            try:
                why = (
                    wording.UNCHECKED
                    if adapter is None
                    else await access.refusal(adapter, person, root.place)
                )
            except SpeakerUnknown:
                why = wording.UNCHECKED
            if why is not None:
                words = wording.NOT_ALLOWED.format(person=person.name, agent=agent.title, why=why)
                raise Conflict(words)

    def _origin(self, turn: Turn) -> SessionKey:
        """Return where people asked for what a turn does: sessions may have several surfaces."""
        cause = self._store.of_turn(turn.id)
        if cause is None:
            return turn.surface
        first = None if cause.root_turn is None else self._turns.turn(cause.root_turn)
        if first is not None:
            return first.surface
        root = self._runtime.stores.sessions.session(cause.root_session)
        if root is None:
            raise NotFound("session", cause.root_session)
        return root.key
