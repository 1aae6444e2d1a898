"""Works out what each command changes, and what to say about it.

Nothing is written here: effects are committed together with the message that asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from app.core.base import Base
from app.core.commands import Command
from app.core.repositories.directory import Directory
from app.core.turns.agents import Processes
from app.errors import AgentError, Conflict
from app.model import wording
from app.model.inbound import Effect
from app.model.keys import PlaceKey
from app.model.types import Session, SessionState

RUNNING = {SessionState.WORKING, SessionState.WAITING, SessionState.LIMITED}
AT_WORK = {*RUNNING, SessionState.QUEUED}


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
        runs = waits or now.state in RUNNING or self._turns.has_errands(session.id)
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
