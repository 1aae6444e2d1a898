"""Finds or creates sessions, adds turns to them and carries out commands.

A command's lasting changes are committed together with its message; only then is the live agent
told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, cast

from app.core.base import Base
from app.core.commands import Command
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.repositories.directory import Directory
from app.core.turns.agents import Processes
from app.errors import AgentError, Conflict, NotFound
from app.model import wording
from app.model.agents import Choices
from app.model.inbound import Accepted, Corrected, Decision, Delivery, Effect, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import TurnEngine
from app.model.posts import NewPost, PostContent, Verbosity
from app.model.types import OPEN_TURN_STATES, Session, SessionState
from app.retry import hold, persist

logger = logging.getLogger(__name__)
RUNNING = {SessionState.WORKING, SessionState.WAITING, SessionState.LIMITED}
AT_WORK = {*RUNNING, SessionState.QUEUED}


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

    async def start_or_continue(self, decision: Decision) -> Accepted:
        """Commit what a message leads to, then start or continue the sessions it asks for."""
        posts, before = self._clean(decision.posts), self._clean(_announce(decision))
        decision = replace(decision, posts=posts, before=before)
        accepted = await persist(self._base.clock, self._decisions.accept, decision)
        # Agents first: their start is what people wait for.
        for ref in accepted.turns:
            self._engine.submit(ref.session)
            self._feed.notify(ref.session)
        for effect in decision.effects:
            if effect.kind == "make way" and not accepted.repeated:
                await self._engine.cancel(effect.session or 0)
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
                # The stopped turn says so elsewhere; the command came from here.
                words = wording.STOPPED
            if command.name == "stop" and await self._base.hooks.stop(heard.place):
                words = wording.STOPPED if not effects else words
            if words:
                speaker = agents[0] if agents else delivery.adapter.partition(":")[2]
                target = SessionKey(heard.place.service, heard.external, speaker)
                content = PostContent(kind="notice", note=words)
                key = f"command:{heard.place}:{heard.message_id}"
                posts += (NewPost(key, target, content),)
        accepted = await self.start_or_continue(
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

    async def stop_subagent(self, number: int) -> None:
        """Stop one sub-agent, on behalf of the operator; its agent and the others go on.

        Raises:
            NotFound: there is no such sub-agent.
            Conflict: it is over, or cannot be stopped alone.
        """
        found = await self._base.stores.subagents.subagent(number)
        if found is None:
            raise NotFound("sub-agent", number)
        with suppress(AgentError, TimeoutError):
            if await self._live.stop_subagent(found.session, found.key):
                return
        raise Conflict(wording.NOT_STOPPED_ALONE.format(name=found.name))

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


def _announce(decision: Decision) -> tuple[NewPost, ...]:
    """Show people a message that they did not see said."""
    heard = decision.heard
    if not heard.announcement:
        return ()
    target = SessionKey(heard.place.service, heard.external, heard.mentions[0])
    content = PostContent(kind="notice", note=heard.announcement)
    return (NewPost(f"said:{heard.place}:{heard.message_id}", target, content),)


class CommandEffects:
    """Works out the effects of commands."""

    def __init__(self, base: Base, live: Processes, directory: Directory) -> None:
        self._base = base
        self._decisions = base.stores.decisions
        self._sessions = base.stores.sessions
        self._turns = base.stores.turns
        self._live = live
        self._directory = directory

    async def of(
        self, command: Command, place: PlaceKey, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Work out what a command changes for sessions of a place, and what to say about it."""
        match command.name:
            case "help":
                own = self._base.hooks.command_help
                return (), "\n".join(filter(None, (wording.HELP, own)))
            case "listen":
                words = wording.LISTENS[command.argument]
                return (Effect("listen", value=command.argument),), words
            case "verbosity":
                words = wording.SHOWS[command.argument]
                return (Effect("verbosity", value=command.argument),), words
            case "repo":
                return self._choose(command, place, sessions)
            case "stop":
                drop = command.argument == "all"
                effects = _for_each(sessions, lambda each: self.stop(each, drop=drop))
                return effects, "" if effects else wording.NOTHING_RUNS
            case _ if not sessions:
                return (), wording.WHICH_AGENT
            case "new":
                return _for_each(sessions, _begin_afresh), wording.STARTS_OVER
            case "mode" | "model":
                return await self._configure(command, sessions)
            case "queue" if command.argument:
                return _for_each(sessions, lambda each: queue(each, command.argument)), ""
            case _:
                return (), "\n".join([await self._describe(session) for session in sessions])

    def _choose(
        self, command: Command, place: PlaceKey, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Set the repository of a place; every session in it starts over there."""
        if not command.argument:
            chosen = self._decisions.place(place).repository
            area = self._directory.area_of(place)
            if chosen is None and area is not None and not self._directory.fixes(place):
                chosen = self._decisions.place(area).repository
            return (), wording.REPOSITORY.format(where=self._directory.words(place, chosen))
        try:
            chosen = self._directory.chosen(place, command.argument, always=command.always)
        except Conflict as error:
            return (), str(error)
        wider = (Effect("remember", value=chosen),) if command.always else ()
        # The choice first: sessions that wait for it go on and no longer block.
        own = (Effect("repository", value=chosen), *wider)
        effects = (*own, *_for_each(sessions, _begin_afresh))
        said = wording.REPOSITORY_ALWAYS if command.always else wording.REPOSITORY_HERE
        return effects, said.format(where=self._directory.words(place, chosen))

    def choose_first(self, place: PlaceKey, text: str) -> tuple[Effect, ...]:
        """Set the repository of a conversation that begins; nothing if it is set already.

        Raises:
            Conflict: it cannot be chosen there, or the conversation works elsewhere.
        """
        if not text:
            return ()
        chosen = self._directory.chosen(place, text)
        current = self._decisions.place(place).repository
        if chosen == current:
            return ()
        if self._sessions.in_place(place):
            words = self._directory.words(place, current)
            raise Conflict(
                f"This conversation works elsewhere (repository: {words}). Start a new one for "
                f"{text}, or send `repo {text}` to switch."
            )
        return (Effect("repository", value=chosen),)

    def stop(self, session: Session, *, drop: bool) -> tuple[Effect, ...]:
        """Stop the current or next turn; a held queue stays held unless it is dropped."""
        # In this order: a turn that begins between the two reads is seen by the second.
        waits = self._turns.next_turn(session.id) is not None
        now = self._sessions.session(session.id) or session
        runs = waits or now.state in RUNNING or self._turns.has_delegations(session.id)
        stop = (Effect("stop", session.id),) if runs else ()
        dropped = drop and session.state in AT_WORK
        return (*stop, Effect("drop", session.id)) if dropped else stop

    async def _configure(
        self, command: Command, sessions: Sequence[Session]
    ) -> tuple[tuple[Effect, ...], str]:
        """Set a mode or model on live agents; the others get it when they start."""
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
                words.append(
                    wording.CONFIGURED.format(
                        agent=self._base.name_of(session.key.agent),
                        kind=kind,
                        name=command.argument,
                    )
                )
        return tuple(effects), "\n".join(words)

    async def _describe(self, session: Session) -> str:
        waiting = sum(turn.state == "queued" for turn in await self._turns.turns(session.id))
        return wording.state(self._base.name_of(session.key.agent), session.state, waiting)


def _for_each(
    sessions: Sequence[Session], effects_of: Callable[[Session], tuple[Effect, ...]]
) -> tuple[Effect, ...]:
    return tuple(effect for session in sessions for effect in effects_of(session))


def _begin_afresh(session: Session) -> tuple[Effect, ...]:
    return (
        Effect("make way", session.id),
        Effect("release", session.id),
        Effect("fresh", session.id),
    )


def queue(session: Session, what: str) -> tuple[Effect, ...]:
    """Run the queue now, in place of the current turn, or drop it."""
    if what == "drop":
        return (Effect("drop", session.id),)
    return (Effect("hand over", session.id), Effect("release", session.id))
