"""Finds or makes sessions, adds turns to them and carries out commands.

What a command changes for good is committed together with the message that asked for it; only then
is the live agent told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from app.core.clock import persist
from app.core.commands import HELP, Command
from app.core.feed import Feed
from app.core.inbound import Accepted, Corrected, Decision, Delivery, Effect, Heard
from app.core.keys import PlaceKey, SessionKey
from app.core.outbox import Outbox
from app.core.ports import Clock, TurnEngine
from app.core.posts import NewPost, PostContent
from app.core.repositories.directory import Directory
from app.core.stores.inbox import IntakeStore
from app.core.stores.sessions import SessionStore, TurnStore
from app.core.turns.agents import LiveAgents
from app.core.types import OPEN_TURN_STATES, Session, SessionState
from app.errors import AgentError, Conflict, NotFound

logger = logging.getLogger(__name__)

RUNNING = {SessionState.WORKING, SessionState.WAITING, SessionState.LIMITED}
AT_WORK = {*RUNNING, SessionState.QUEUED}


class SessionManager:
    """Sessions and commands, for all services."""

    def __init__(
        self,
        decisions: IntakeStore,
        sessions: SessionStore,
        turns: TurnStore,
        *,
        engine: TurnEngine,
        live: LiveAgents,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        directory: Directory,
    ) -> None:
        self._decisions = decisions
        self._sessions = sessions
        self._turns = turns
        self._engine = engine
        self._live = live
        self._outbox = outbox
        self._feed = feed
        self._clock = clock
        self._directory = directory

    async def admit(self, decision: Decision) -> Accepted:
        """Write down what a message leads to, then let it happen."""
        posts = tuple(
            replace(post, content=self._outbox.clean(post.content)) for post in decision.posts
        )
        decision = replace(decision, posts=posts)
        accepted = await persist(self._clock, self._decisions.accept, decision)
        # Agents first: their start is what people wait for.
        for ref in accepted.turns:
            self._engine.submit(ref.session)
            self._feed.notify(ref.session)
        self._outbox.send(*accepted.posts)
        self._feed.notify_place(decision.heard.place)
        return accepted

    def corrected(self, place: PlaceKey, corrected: Corrected) -> None:
        """Show what became of a message that was edited or taken back."""
        for ref in corrected.turns:
            self._feed.notify(ref.session)
        self._outbox.send(*corrected.posts)
        self._feed.notify_place(place)

    def sessions(self, place: PlaceKey) -> Sequence[Session]:
        """List the sessions of a place."""
        return self._sessions.in_place(place)

    def at_work(self, place: PlaceKey) -> tuple[str, ...]:
        """Tell which agents of a place have something to do."""
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
            # The repository is the place's: whoever works there works in it.
            if session.key.agent in agents or command.name == "repo"
        ]
        effects: tuple[Effect, ...] = ()
        posts = refusals
        if agents or not refusals:
            effects, words = await self._consequences(command, heard.place, sessions)
            if effects and command.name == "stop" and not await self._works_in(sessions, heard):
                words = "Stopped."  # what was stopped says so elsewhere, but somebody asks here
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
                    group.create_task(self._follow(session.id, effects))
        return accepted

    async def stop(self, session_id: int, *, drop: bool = False) -> None:
        """Stop a session's turn on behalf of the operator.

        Raises:
            NotFound: there is no such session.
        """
        await self._change(session_id, lambda session: self._stopping(session, drop=drop))

    async def queue(self, session_id: int, what: Literal["now", "drop"]) -> None:
        """Run what waits now, in place of what runs, or drop it, on behalf of the operator.

        Raises:
            NotFound: there is no such session.
        """
        await self._change(session_id, lambda session: _queue(session, what))

    async def _change(
        self, session_id: int, effects_of: Callable[[Session], tuple[Effect, ...]]
    ) -> None:
        session = self._known(session_id)
        effects = effects_of(session)
        posts = await persist(self._clock, self._decisions.change, session.place, effects)
        self._outbox.send(*posts)
        await self._follow(session_id, effects)

    async def remove(self, session_id: int) -> None:
        """Take an agent out of its place.

        Raises:
            NotFound: there is no such session.
        """
        await self.stop(session_id, drop=True)
        await self._sessions.remove(session_id)
        await self._live.end(session_id)

    def _known(self, session_id: int) -> Session:
        session = self._sessions.session(session_id)
        if session is None:
            raise NotFound("session", session_id)
        return session

    async def _consequences(
        self, command: Command, place: PlaceKey, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Work out what a command changes and what is said about it."""
        match command.name:
            case "help":
                return (), HELP
            case "listen":
                words = f"Untagged messages here: `{command.argument}`."
                return (Effect("listen", value=command.argument),), words
            case "verbosity":
                return (Effect("verbosity", value=command.argument),), f"Now {command.argument}."
            case "repo":
                return self._choose(command, place, sessions)
            case "stop":
                drop = command.argument == "all"
                effects = _for_each(sessions, lambda each: self._stopping(each, drop=drop))
                return effects, "" if effects else "Nothing is running here."
            case _ if not sessions:
                return (), "No agent is meant: mention the one you mean."
            case "new":
                return _for_each(sessions, _beginning_afresh), "The next message begins afresh."
            case "mode" | "model":
                return await self._configure(command, sessions)
            case "queue" if command.argument:
                return _for_each(sessions, lambda each: _queue(each, command.argument)), ""
            case _:
                return (), "\n".join([await self._describe(session) for session in sessions])

    def _choose(
        self, command: Command, place: PlaceKey, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Set the repository of a place; whoever is in it begins afresh there."""
        if not command.argument:
            chosen = self._decisions.place(place).repository
            if chosen is None and place.area is not None and not self._directory.fixes(place):
                chosen = self._decisions.place(place.area).repository
            return (), f"Repository: {self._directory.words(place, chosen)}."
        try:
            chosen = self._directory.chosen(place, command.argument, always=command.always)
        except Conflict as error:
            return (), str(error)
        wider = (Effect("remember", value=chosen),) if command.always else ()
        # First the choice: whoever waits for it goes on, and is not in the way any more.
        own = (Effect("repository", value=chosen), *wider)
        effects = (*own, *_for_each(sessions, _beginning_afresh))
        also = ", and in new conversations" if command.always else ""
        return effects, f"From now on here{also}: {self._directory.words(place, chosen)}."

    def _stopping(self, session: Session, *, drop: bool) -> tuple[Effect, ...]:
        """Stop what runs or is about to; what was held before stays held, unless it is dropped."""
        # In this order: a turn that begins between two looks is seen by the second.
        waits = self._turns.next_turn(session.id) is not None
        runs = waits or self._known(session.id).state in RUNNING
        stop = (Effect("stop", session.id),) if runs else ()
        dropped = drop and session.state in AT_WORK
        return (*stop, Effect("drop", session.id)) if dropped else stop

    async def _works_in(self, sessions: Sequence[Session], heard: Heard) -> bool:
        """Tell whether work for the conversation that a message came from is going on."""
        if heard.external == heard.place.name:
            return True  # the place has one conversation
        turns = [turn for each in sessions for turn in await self._turns.turns(each.id)]
        open_ones = (turn for turn in turns if turn.state in OPEN_TURN_STATES)
        return any(turn.surface.external == heard.external for turn in open_ones)

    async def _configure(
        self, command: Command, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Try a mode or model on agents that live; the others get it when they start."""
        kind: Literal["mode", "model"] = "mode" if command.name == "mode" else "model"
        effects: list[Effect] = []
        words: list[str] = []
        for session in sessions:
            try:
                await self._live.configure(session.id, **{kind: command.argument})
            except AgentError as error:
                words.append(str(error))
            else:
                effects.append(Effect(kind, session.id, command.argument))
                words.append(f"{session.key.agent}: {kind} {command.argument}.")
        return tuple(effects), "\n".join(words)

    async def _describe(self, session: Session) -> str:
        waiting = sum(turn.state == "queued" for turn in await self._turns.turns(session.id))
        queue = f", {waiting} waiting" if waiting else ""
        return f"{session.key.agent}: {session.state}{queue}"

    async def _follow(self, session_id: int, effects: Sequence[Effect]) -> None:
        """Tell the live agent what was decided for its session."""
        kinds = {effect.kind for effect in effects if effect.session == session_id}
        if kinds & {"stop", "make way", "hand over"}:
            await self._engine.cancel(session_id)
        if "fresh" in kinds:
            await self._live.end(session_id)
        self._feed.notify(session_id)
        self._engine.submit(session_id)


def _for_each(
    sessions: Sequence[Session], effects_of: Callable[[Session], tuple[Effect, ...]]
) -> tuple[Effect, ...]:
    return tuple(effect for session in sessions for effect in effects_of(session))


def _beginning_afresh(session: Session) -> tuple[Effect, ...]:
    return (
        Effect("make way", session.id),
        Effect("release", session.id),
        Effect("fresh", session.id),
    )


def _queue(session: Session, what: str) -> tuple[Effect, ...]:
    if what == "drop":
        return (Effect("drop", session.id),)
    return (Effect("hand over", session.id), Effect("release", session.id))


def _reply(delivery: Delivery, heard: Heard, agents: Sequence[str], words: str) -> NewPost:
    speaker = agents[0] if agents else delivery.adapter.partition(":")[2]
    target = SessionKey(heard.place.service, heard.external, speaker)
    content = PostContent(kind="notice", note=words)
    return NewPost(f"command:{heard.place}:{heard.message_id}", target, content)
