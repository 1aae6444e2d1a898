"""Protocols that the outside implements for the core: time, agents, files.

A port has one method per decision. What must be true together is one method and one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.model.agents import Choices
from app.model.background import Woken, Work
from app.model.keys import PlaceKey
from app.model.posts import Verbosity
from app.model.subagents import Subagent
from app.model.types import Attachment, Session
from app.model.updates import AskRequest, BridgeUpdate, PromptEnd
from app.model.workspaces import Workspace


class Counters(Protocol):
    """Counters, durations and stages of turns that can be read from outside."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        ...

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        ...

    def trace(self, stage: str, turn: int, began: float, ended: float, **facts: str) -> None:
        """Record a stage of a turn, from one time to another."""
        ...


class TurnEngine(Protocol):
    """Runs turns; takes ids, never live objects."""

    def submit(self, session: int) -> None:
        """Run the queued turns of a session."""
        ...

    async def cancel(self, session: int) -> None:
        """Stop the running turn of a session, if there is one, and those stopped with it."""
        ...

    def show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        """Change how much detail the running turns of a place show from now on."""
        ...


class AgentListener(Protocol):
    """Receives what an agent does."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take one update; may wait for the store, never for a platform or for the agent."""
        ...

    async def on_ask(self, request: AskRequest) -> str | None:
        """Get a person's answer: an option id, free text where allowed, None if cancelled."""
        ...


class SessionListener(AgentListener, Protocol):
    """Receives what an agent does between its turns as well."""

    def on_woken(self, woken: Woken) -> None:
        """Hear that the agent began something by itself; it is kept until a turn follows it."""
        ...

    async def on_late(self, turn: int, update: BridgeUpdate) -> None:
        """Take what comes late for a call that an earlier turn began."""
        ...

    def on_unshown(self, what: str) -> None:
        """Count something that no one can be shown."""
        ...

    def on_work(self, work: tuple[Work, ...]) -> None:
        """Hear what goes on without a turn, whenever that changes."""
        ...


class AgentSession(Protocol):
    """One conversation with one live agent process."""

    @property
    def acp_session_id(self) -> str:
        """The agent's id of the conversation."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        ...

    @property
    def choices(self) -> Choices:
        """The modes and models that it offers."""
        ...

    @property
    def woken(self) -> Woken | None:
        """What woke the agent, if it began something by itself that no turn has taken."""
        ...

    @property
    def work(self) -> tuple[Work, ...]:
        """What goes on besides its turns."""
        ...

    async def prompt(
        self,
        text: str,
        listener: AgentListener,
        *,
        files: Sequence[Attachment] = (),
        turn: int = 0,
    ) -> PromptEnd:
        """Send a prompt and follow what happens until the agent ends its turn.

        The text names every file by its path; files are sent in a form that the agent accepts.
        `turn` is what later updates of calls that begin now are told by.

        Raises:
            AgentError: it died, hung, misbehaved or answered with an error.
        """
        ...

    @property
    def steerable(self) -> bool:
        """Whether words can go into a running turn."""
        ...

    async def steer(self, text: str, *, files: Sequence[Attachment] = ()) -> bool:
        """Put words into the running turn; False if the agent did not take them.

        Raises:
            AgentError: it died or did not answer; it may have taken them.
        """
        ...

    async def follow(self, listener: AgentListener, *, turn: int) -> PromptEnd:
        """Follow what the agent began by itself until it rests, or makes way for a prompt.

        Raises:
            AgentError: it died or misbehaved.
        """
        ...

    def make_way(self) -> None:
        """End `follow`: what the agent does from now on belongs to the prompt that comes."""
        ...

    @property
    def subagents(self) -> Sequence[Subagent]:
        """The sub-agents that are at work, also between turns: work that needs its process."""
        ...

    async def stop_subagent(self, key: str) -> bool:
        """Ask a sub-agent to end its work, alone; False if it cannot be stopped alone, or is over.

        Raises:
            AgentError: its agent is gone.
        """
        ...

    async def cancel(self) -> None:
        """Ask the agent to end its turn and its sub-agents; returns when they did or on timeout."""
        ...

    async def silence(self) -> None:
        """Ask the agent to end what it does by itself, and take no turn for it until a prompt."""
        ...

    async def configure(self, *, mode: str | None, model: str | None) -> None:
        """Set mode and model where the agent offers them.

        Raises:
            AgentRefused: it does not offer that.
        """
        ...

    async def close(self) -> None:
        """End the process and everything it started."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A conversation with an agent that was started, and how it began."""

    session: AgentSession
    how: Literal["new", "resumed", "loaded", "lost"]
    """`lost`: there was a conversation, but the agent could not restore it."""
    instructed: bool = False
    """Whether the agent took the system prompt."""
    marks: frozenset[int] | None = None
    """The messages that its replayed conversation holds; None without a replay."""
    elsewhere: str = ""
    """Where it works, if that is on another machine."""


class AgentLauncher(Protocol):
    """Starts agents."""

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: SessionListener,
        *,
        system: str = "",
        replay: bool = False,
    ) -> OpenedSession:
        """Start the agent's process and its conversation, resuming an earlier one if there is one.

        `system` is its system prompt, if it takes one. With `replay`, it is to repeat the earlier
        conversation, if it can.

        Raises:
            AgentError: it could not be started or did not answer.
        """
        ...

    async def close(self) -> None:
        """End every process that is still starting or stopping."""
        ...
