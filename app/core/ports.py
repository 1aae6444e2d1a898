"""The Protocols that the outside implements for the core: time, memory, agents, platforms.

A port has one method per decision. Whatever must be true together is one method, hence one commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from app.core.keys import PlaceKey, SessionKey
from app.core.types import (
    Accepted,
    Ask,
    AskRequest,
    BridgeUpdate,
    Decision,
    Delivery,
    DeliveryLine,
    DeliveryState,
    Effect,
    Entry,
    File,
    Inbound,
    Message,
    PlaceView,
    Post,
    PostContent,
    PostSend,
    PostSent,
    ProcessRecord,
    PromptEnd,
    Session,
    Speaker,
    Thread,
    Turn,
    TurnRef,
    TurnState,
)


class Clock(Protocol):
    """Time, so that a test can play hours."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Counters(Protocol):
    """Numbers that can be seen from outside."""

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        ...


# Memory.


class DeliveryStore(Protocol):
    """What came in, as it came."""

    async def add(self, delivery: Delivery) -> None:
        """Keep a delivery; one that is known by id or by signature changes nothing."""
        ...

    async def pending(self, adapter: str, after: int) -> Sequence[Delivery]:
        """List what nobody has dealt with, in order of arrival."""
        ...

    async def settle(self, seq: int, state: DeliveryState, reason: str) -> None:
        """Say what became of a delivery that led to no message."""
        ...

    async def recent(self, *, before: int | None, limit: int) -> Sequence[DeliveryLine]:
        """List deliveries without what they held, the newest first."""
        ...


class IntakeStore(Protocol):
    """What the intake must know and what it decides."""

    def decided(self, place: PlaceKey, message_id: str) -> bool:
        """Tell whether this message was decided on before, by whichever adapter heard it."""
        ...

    def place(self, place: PlaceKey) -> PlaceView:
        """Tell who is in a place."""
        ...

    async def accept(self, decision: Decision) -> Accepted:
        """Write all that follows from one message."""
        ...

    async def change(self, place: PlaceKey, effects: Sequence[Effect]) -> Sequence[int]:
        """Write what an operator changed; returns the posts to send."""
        ...


class SessionStore(Protocol):
    """Sessions and how people find them."""

    def session(self, session: int) -> Session | None:
        """Read one session."""
        ...

    def find(self, key: SessionKey) -> Session | None:
        """Find the session that a key names."""
        ...

    def in_place(self, place: PlaceKey) -> Sequence[Session]:
        """List the sessions of a place."""
        ...

    async def recent(
        self,
        *,
        agent: str | None,
        state: str | None,
        before: tuple[float, int] | None,
        limit: int,
    ) -> Sequence[Session]:
        """List sessions, the one used last first."""
        ...

    async def threads(self, *, limit: int) -> Sequence[Thread]:
        """List places, the one where something happened last first."""
        ...

    async def thread(self, place: PlaceKey) -> Thread | None:
        """Read one place as it stands in the list."""
        ...

    async def rename(self, session: int, title: str) -> None:
        """Give a session a title."""
        ...

    async def remove(self, session: int) -> None:
        """Take an agent out of its place; what was said stays readable."""
        ...


class TurnStore(Protocol):
    """Turns, from queued to their end; every step is one commit."""

    def turn(self, turn: int) -> Turn | None:
        """Read one turn."""
        ...

    async def turns(self, session: int) -> Sequence[Turn]:
        """List the turns of a session, oldest first."""
        ...

    def next_turn(self, session: int) -> Turn | None:
        """Tell which queued turn of a session comes next, unless it is held."""
        ...

    def messages(self, turn: int) -> Sequence[Message]:
        """List the messages that became part of a turn, in order."""
        ...

    def waiting(self, session: int) -> int:
        """Count the turns of a session that wait."""
        ...

    async def starting(self, turn: int) -> bool:
        """Take a queued turn; False if it is no longer there to be taken."""
        ...

    async def prompted(self, turn: int, prompt: str, acp_session_id: str, generation: int) -> bool:
        """Note, before the bytes are written, what the agent is about to be told.

        False if somebody stopped the turn meanwhile: then nothing may be written.
        """
        ...

    async def finish(
        self,
        turn: int,
        state: TurnState,
        content: PostContent,
        entries: Sequence[Entry],
        error: str = "",
    ) -> tuple[int, ...] | None:
        """End a turn with its last entries and its final post; returns the posts to send.

        A turn that has ended stays as it ended: then nothing is written and None returned.
        """
        ...

    async def interrupt(self, turn: int) -> None:
        """Put a turn back that a polite shutdown cut off; that does not count as a cut.

        One that somebody had stopped ends as stopped.
        """
        ...

    async def recover(self) -> Sequence[TurnRef]:
        """Sort out what the last run left behind and list the sessions that have work.

        Cut off in `starting`: queued again. Cut off in `prompted`: queued as a continuation, or
        failed when it was cut before, or ended when somebody had stopped it. Open asks are lost.
        The places are told in the same commit.
        """
        ...


class TranscriptStore(Protocol):
    """What happened, as the page shows it."""

    async def append(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Add entries and return their numbers."""
        ...

    async def read(self, session: int, *, after: int, limit: int) -> Sequence[Entry]:
        """Read a session's entries, its messages among them, in order."""
        ...

    async def read_place(self, place: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of all sessions of a place, and everything said there, in order."""
        ...

    async def window(self, place: PlaceKey, *, articles: int) -> int:
        """Tell after which number the last messages and turns of a place begin.

        Turns that are open lie inside, however long ago they began. 0: everything does.
        """
        ...

    async def history(self, session: int, *, before_turn: int, limit: int) -> Sequence[Entry]:
        """Read the last messages and answers of the current conversation, oldest first."""
        ...


class AskStore(Protocol):
    """Asks: one row each, answered once."""

    async def open(self, request: AskRequest, ref: TurnRef) -> tuple[Ask, int]:
        """Keep an ask and its post; returns the ask and the post's id."""
        ...

    async def answer(self, ask: int, option: str, by: str) -> Sequence[int] | None:
        """Answer an open ask; returns the posts to send, None if it is not open any more."""
        ...

    def ask(self, ask: int) -> Ask | None:
        """Read one ask."""
        ...

    async def asks(self, state: str | None, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks."""
        ...


class PostStore(Protocol):
    """What goes out."""

    def post(self, post: int) -> Post | None:
        """Read one post."""
        ...

    def of_turn(self, turn: int) -> Post | None:
        """Read the post that shows a turn."""
        ...

    async def unsent(self) -> Sequence[Post]:
        """List what has not gone out, in order."""
        ...

    async def recent(self, *, before: int | None, limit: int) -> Sequence[Post]:
        """List posts, the newest first."""
        ...

    async def sent(self, post: int, sent: PostSent, *, final: bool) -> None:
        """Note what the platform made of a post."""
        ...

    async def failed(self, post: int, error: str) -> None:
        """Note that a post can never be sent, and that its surface cannot be reached."""
        ...


class ProcessStore(Protocol):
    """Agent processes that a crash could leave behind."""

    async def started(self, process: ProcessRecord) -> None:
        """Remember a process."""
        ...

    async def ended(self, marker: str) -> None:
        """Forget a process that is gone."""
        ...

    async def leftovers(self) -> Sequence[ProcessRecord]:
        """List the processes that were never said to be gone."""
        ...


class LoginStore(Protocol):
    """Log-ins, each begun by a link that works once."""

    async def offer(self, link_hash: str, *, until: float) -> None:
        """Keep a link, by the hash of its secret part."""
        ...

    async def begin(self, link_hash: str, *, until: float) -> str | None:
        """Use up a link; returns the name of the log-in, None if the link is of no use."""
        ...

    def lasts(self, login: str) -> bool:
        """Tell whether a log-in was begun and has neither ended nor been revoked."""
        ...

    async def revoke(self, login: str) -> None:
        """End a log-in."""
        ...

    async def revoke_all(self) -> None:
        """End every log-in and every link."""
        ...


class TurnEngine(Protocol):
    """Runs turns; takes ids, never live objects."""

    def submit(self, session: int) -> None:
        """See to it that the queued turns of a session run."""
        ...

    async def cancel(self, session: int) -> None:
        """Stop the turn of a session that runs, if one does."""
        ...

    async def run(self, turn: int) -> None:
        """Run one turn to its end."""
        ...


# Agents.


class AgentListener(Protocol):
    """Whoever hears what an agent does."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Take one update; may wait for the store, never for a platform or for the agent."""
        ...

    async def on_ask(self, request: AskRequest) -> str | None:
        """Get a person's answer: an option id, or None for cancelled."""
        ...


class AgentSession(Protocol):
    """One conversation with one live agent process."""

    @property
    def acp_session_id(self) -> str:
        """The agent's own name of the conversation."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        ...

    async def prompt(self, text: str, listener: AgentListener) -> PromptEnd:
        """Say something and follow what happens until the agent ends its turn.

        Raises:
            AgentError: it died, hung, misbehaved or answered with an error.
        """
        ...

    async def cancel(self) -> None:
        """Ask the agent to end its turn; returns when it did or when its time is over."""
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


class OpenedSession(Protocol):
    """What came of bringing an agent to life."""

    @property
    def session(self) -> AgentSession:
        """The conversation."""
        ...

    @property
    def how(self) -> Literal["new", "resumed", "loaded", "lost"]:
        """`lost`: there was a conversation, but the agent could not bring it back."""
        ...


class AgentLauncher(Protocol):
    """Brings agents to life."""

    async def open(
        self, session: Session, workspace: Path, listener: AgentListener
    ) -> OpenedSession:
        """Start the agent's process and its conversation, an earlier one if there was one.

        Raises:
            AgentError: it could not be started or did not answer.
        """
        ...

    async def close(self) -> None:
        """End every process that is still being started or ended."""
        ...


class Workspaces(Protocol):
    """Where agents work."""

    async def open(self, session: Session) -> Path:
        """Make the folder of a session ready.

        Raises:
            OSError: it cannot be made.
        """
        ...

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Lay files beside a session's workspace and tell where they are.

        Raises:
            OSError: one of them cannot be read or written.
        """
        ...


# Platforms.


class Adapter(Protocol):
    """One agent's presence on one service."""

    @property
    def service_name(self) -> str:
        """The agent-qualified name (`slack:codex`) that stored things are matched by."""
        ...

    @property
    def agent(self) -> str:
        """Whose presence it is."""
        ...

    @property
    def pace(self) -> float:
        """The least number of seconds between two edits of one message."""
        ...

    def parse(self, delivery: Delivery) -> Inbound | None:
        """Understand a delivery; None if it is of no concern.

        Raises:
            DeliveryUnreadable: it makes no sense.
        """
        ...

    async def may_trigger(self, speaker: Speaker, place: PlaceKey) -> bool:
        """Ask the platform whether this person may make the agent act here."""
        ...

    async def send(self, post: PostSend) -> PostSent:
        """Render and send one post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        ...

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a post that may have been sent although no answer came."""
        ...

    async def close(self) -> None:
        """Let go of whatever is held open."""
        ...


@runtime_checkable
class WebhookAdapter(Adapter, Protocol):
    """An adapter whose events arrive over HTTP."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its events arrive."""
        ...

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check that the platform sent this, without parsing it.

        Raises:
            DeliveryRefused: it did not, or not now.
        """
        ...
