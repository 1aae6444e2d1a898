"""Finds or creates sessions, adds turns to them and carries out commands.

A command's lasting changes are committed together with its message; only then is the live agent
told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, cast

from app.core.base import Base
from app.core.command_effects import AT_WORK, CommandEffects, queue
from app.core.commands import Command
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.repositories.directory import Directory
from app.core.turns.agents import Processes
from app.errors import NotFound
from app.model import wording
from app.model.agents import Choices
from app.model.inbound import Accepted, Corrected, Decision, Delivery, Effect, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import TurnEngine
from app.model.posts import NewPost, PostContent, Verbosity
from app.model.types import OPEN_TURN_STATES, Session
from app.retry import hold, persist

logger = logging.getLogger(__name__)


class SessionManager:
    """Sessions and commands, for all services."""

    def __init__(
        self,
        base: Base,
        *,
        engine: TurnEngine,
        live: Processes,
        outbox: Outbox,
        feed: Feed,
        directory: Directory,
    ) -> None:
        self._base = base
        self._decisions = base.stores.decisions
        self._sessions = base.stores.sessions
        self._turns = base.stores.turns
        self._engine = engine
        self._live = live
        self._outbox = outbox
        self._feed = feed
        self._effects = CommandEffects(base, live, directory)

    async def admit(self, decision: Decision) -> Accepted:
        """Commit what a message leads to, then carry it out."""
        posts, before = self._clean(decision.posts), self._clean(_announce(decision))
        decision = replace(decision, posts=posts, before=before)
        accepted = await persist(self._base.clock, self._decisions.accept, decision)
        # Agents first: their start is what people wait for.
        for ref in accepted.turns:
            self._engine.submit(ref.session)
            self._feed.notify(ref.session)
        for effect in decision.effects:
            if effect.kind == "verbosity":
                self._engine.show(decision.heard.place, cast("Verbosity", effect.value))
        self._outbox.send(*accepted.posts)
        self._feed.notify_place(decision.heard.place)
        return accepted

    def _clean(self, posts: Sequence[NewPost]) -> tuple[NewPost, ...]:
        return tuple(replace(post, content=self._outbox.clean(post.content)) for post in posts)

    def choose(self, place: PlaceKey, repository: str) -> tuple[Effect, ...]:
        """Work out what a choice with a first message changes.

        Raises:
            Conflict: it cannot be chosen there, or the conversation works elsewhere.
        """
        return self._effects.choose_first(place, repository)

    def show_correction(self, place: PlaceKey, corrected: Corrected) -> None:
        """Show the outcome of an edited or deleted message."""
        for ref in corrected.turns:
            self._feed.notify(ref.session)
        self._outbox.send(*corrected.posts)
        self._feed.notify_place(place)

    def sessions(self, place: PlaceKey) -> Sequence[Session]:
        """List the sessions of a place."""
        return self._sessions.in_place(place)

    def at_work(self, place: PlaceKey) -> tuple[str, ...]:
        """List the agents of a place that have work."""
        return tuple(
            session.key.agent
            for session in self._sessions.in_place(place)
            if session.state in AT_WORK
        )

    async def command(
        self,
        command: Command,
        delivery: Delivery,
        heard: Heard,
        agents: Sequence[str],
        refusals: tuple[NewPost, ...],
    ) -> Accepted:
        """Carry out a command for the agents it is meant for."""
        sessions = [
            session
            for session in self._sessions.in_place(heard.place)
            # The repository belongs to the place: every session there works in it.
            if session.key.agent in agents or command.name == "repo"
        ]
        effects: tuple[Effect, ...] = ()
        posts = refusals
        if agents or not refusals:
            if command.own is not None:
                words = await command.own.hook.obey(command.own.what, heard, agents)
            else:
                effects, words = await self._effects.of(command, heard.place, sessions)
            if effects and command.name == "stop" and not await self._works_in(sessions, heard):
                words = (
                    wording.STOPPED
                )  # the stopped turn says so elsewhere; the command came from here
            if command.name == "stop" and await self._base.hooks.stop(heard.place):
                words = wording.STOPPED if not effects else words
            posts += (_reply(delivery, heard, agents, words),) if words else ()
        accepted = await self.admit(
            Decision(
                delivery.seq,
                heard,
                "refused" if refusals and not agents else "done",
                f"command {command.name}",
                posts=posts,
                effects=effects,
            )
        )
        if not accepted.repeated:
            async with asyncio.TaskGroup() as group:
                for session in sessions:
                    group.create_task(hold(self._follow(session.id, effects)))
        return accepted

    async def stop(self, session_id: int, *, drop: bool = False) -> None:
        """Stop a session's turn on behalf of the operator.

        Raises:
            NotFound: there is no such session.
        """
        await self._change(session_id, lambda session: self._effects.stop(session, drop=drop))

    async def queue(self, session_id: int, what: Literal["now", "drop"]) -> None:
        """Run the queue now, in place of the current turn, or drop it, on behalf of the operator.

        Raises:
            NotFound: there is no such session.
        """
        await self._change(session_id, lambda session: queue(session, what))

    def choices(self, session: Session) -> Choices:
        """Return the modes and models that a session's agent offers, as far as it is known."""
        return self._live.choices(session)

    async def configure(self, session_id: int, kind: Literal["mode", "model"], value: str) -> None:
        """Set the mode or model of a session's agent on behalf of the operator.

        Raises:
            NotFound: there is no such session.
            AgentError: it does not offer that.
        """
        self._known(session_id)
        await self._live.configure(session_id, **{kind: value})
        await self._change(session_id, lambda session: (Effect(kind, session.id, value),))

    async def _change(
        self, session_id: int, effects_of: Callable[[Session], tuple[Effect, ...]]
    ) -> None:
        session = self._known(session_id)
        effects = effects_of(session)
        posts = await persist(self._base.clock, self._decisions.change, session.place, effects)
        self._outbox.send(*posts)
        await self._follow(session_id, effects)

    async def remove(self, session_id: int, words: str = "") -> None:
        """Take an agent out of its place, and give people who wait for it these words, if any.

        Raises:
            NotFound: there is no such session.
        """
        tell = (Effect("tell", session_id, words),) if words else ()
        await self._change(
            session_id, lambda session: (*tell, *self._effects.stop(session, drop=True))
        )
        await self._sessions.remove(session_id)
        await self._live.end(session_id)

    def _known(self, session_id: int) -> Session:
        session = self._sessions.session(session_id)
        if session is None:
            raise NotFound("session", session_id)
        return session

    async def _works_in(self, sessions: Sequence[Session], heard: Heard) -> bool:
        """Tell whether a turn for the conversation of a message is open."""
        if heard.external == heard.place.name:
            return True  # the place has one conversation
        turns = [turn for each in sessions for turn in await self._turns.turns(each.id)]
        open_ones = (turn for turn in turns if turn.state in OPEN_TURN_STATES)
        return any(turn.surface.external == heard.external for turn in open_ones)

    async def _follow(self, session_id: int, effects: Sequence[Effect]) -> None:
        """Tell the live agent what was decided for its session."""
        kinds = {effect.kind for effect in effects if effect.session == session_id}
        if kinds & {"stop", "make way", "hand over"}:
            await self._engine.cancel(session_id)
        if "fresh" in kinds:
            await self._live.end(session_id)
        self._feed.notify(session_id)
        self._engine.submit(session_id)


def _reply(delivery: Delivery, heard: Heard, agents: Sequence[str], words: str) -> NewPost:
    speaker = agents[0] if agents else delivery.adapter.partition(":")[2]
    target = SessionKey(heard.place.service, heard.external, speaker)
    content = PostContent(kind="notice", note=words)
    return NewPost(f"command:{heard.place}:{heard.message_id}", target, content)


def _announce(decision: Decision) -> tuple[NewPost, ...]:
    """Show people a message that they did not see said."""
    heard = decision.heard
    if not heard.announcement:
        return ()
    target = SessionKey(heard.place.service, heard.external, heard.mentions[0])
    content = PostContent(kind="notice", note=heard.announcement)
    return (NewPost(f"said:{heard.place}:{heard.message_id}", target, content),)
