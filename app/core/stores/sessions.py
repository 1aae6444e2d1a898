"""Ports for the work itself: sessions, turns, the transcript, and posts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from app.model.filters import EVERYTHING, ListFilter
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, Post, PostContent, PostSent
from app.model.types import (
    ActivePlace,
    Activity,
    Entry,
    Message,
    Overheard,
    Session,
    Turn,
    TurnRef,
    TurnState,
)
from app.model.updates import AskRequest


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
        only: ListFilter = EVERYTHING,
        *,
        before: tuple[float, int] | None = None,
        limit: int,
    ) -> Sequence[Session]:
        """List sessions, the one used last first."""
        ...

    async def activities(self) -> Mapping[str, Activity]:
        """Tell which agents have open turns, and whether all of these wait."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Count the sessions of each agent that were not removed."""
        ...

    async def repositories(self, *, limit: int) -> Sequence[str]:
        """List the repositories and folders that were chosen, the one used last first."""
        ...

    async def active(self, service: str, agent: str, *, since: float) -> Sequence[ActivePlace]:
        """List an agent's conversations on a service that were used since a time."""
        ...

    async def link(self, session: int, key: SessionKey, place: PlaceKey) -> bool:
        """Make a further place a surface of a session; False if the key names another one."""
        ...

    async def rename(self, session: int, title: str) -> None:
        """Give a session a title."""
        ...

    async def annotate(self, session: int, changes: Mapping[str, Any]) -> None:
        """Change what other programs keep with a session; None removes an attribute.

        Raises:
            Conflict: the attributes would be too many, or too large.
        """
        ...

    async def remove(self, session: int) -> None:
        """Take an agent out of its place; what was said stays readable."""
        ...

    async def reads_others(self, session: int) -> None:
        """Record that a tool brings words of others into a session's conversation."""
        ...

    async def spend(
        self, session: int, cost: float, *, turn: int, day: str, most: float
    ) -> tuple[float, float]:
        """Record the cost that an agent reports for its conversation, and for a day if named.

        It grows by `most` at most; a report of more counts for the session and its agent alone.
        Returns what the session had spent before and after, since a person last said go on.
        """
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

    async def queued(self) -> Sequence[TurnRef]:
        """List the turns that are queued and not held, oldest first."""
        ...

    def messages(self, turn: int) -> Sequence[Message]:
        """List the messages that became part of a turn, in order."""
        ...

    def hearers(self, turn: int) -> frozenset[str]:
        """Tell which agents heard any message of a turn."""
        ...

    def waiting(self, session: int) -> int:
        """Count the turns of a session that wait."""
        ...

    def has_errands(self, session: int) -> bool:
        """Tell whether other agents still work on what a session asked for."""
        ...

    async def starting(self, turn: int) -> bool:
        """Take a queued turn; False if it is no longer queued."""
        ...

    async def prompted(
        self,
        turn: int,
        prompt: str,
        acp_session_id: str,
        generation: int,
        *,
        told: int = 0,
        system: str = "",
        standing: Mapping[str, str] | None = None,
    ) -> bool:
        """Record what the agent is about to be told, before the bytes are written.

        `told` is the last row of the transcript that the prompt includes, `system` the system
        prompt that the agent was started with for this turn, `standing` what it then knows of
        itself, by part.

        False if the turn was stopped meanwhile: then nothing may be written.
        """
        ...

    async def finish(
        self,
        turn: int,
        state: TurnState,
        content: PostContent,
        entries: Sequence[Entry],
        error: str = "",
        *,
        more: Sequence[NewPost] = (),
    ) -> tuple[int, ...] | None:
        """End a turn with its last entries, its final post and more; returns the posts to send.

        A turn that has ended stays as it ended: then nothing is written and None returned.
        """
        ...

    async def park(self, turn: int, content: PostContent, asks: Sequence[int]) -> bool:
        """Leave a turn to wait for the answers to these asks without a process.

        False if it was stopped, or one of them was answered meanwhile: then nothing changed.
        """
        ...

    async def pause(
        self,
        turn: int,
        content: PostContent,
        request: AskRequest,
        *,
        deadline: float,
        resume_at: float | None,
    ) -> tuple[int, ...] | None:
        """Put a turn back until a person says go on; the call of the request names the reason.

        Returns the posts to send; None if it was stopped meanwhile: then nothing changed.
        """
        ...

    async def interrupt(self, turn: int) -> None:
        """Put a turn back that a graceful shutdown interrupted; that does not count as cut off.

        A turn that was stopped ends as stopped.
        """
        ...

    async def recover(self) -> Sequence[TurnRef]:
        """Recover what the last run left behind and list the sessions that have work.

        Cut off in `starting`: queued again. Cut off in `prompted`: queued as a continuation, or
        failed when it was cut before, or ended when it had been stopped. Open asks are lost.
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

    async def of_turn(self, session: int, turn: int) -> Sequence[Entry]:
        """Read what a turn did, asked and used, in order: not what was said."""
        ...

    async def read_place(self, place: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of all sessions of a place, and everything said there, in order."""
        ...

    async def read_tree(self, place: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of a place and of those in which agents work for it, in order.

        What an agent there was asked has the session and the turn that do it.
        """
        ...

    async def window(self, place: PlaceKey, *, articles: int) -> int:
        """Tell after which number the last messages and turns of a place begin.

        Open turns are always included, however long ago they began. 0 means everything.
        """
        ...

    async def offered(self, session: int) -> Sequence[Mapping[str, str]]:
        """Return the commands that a session's agent offered last: name, description, hint."""
        ...

    async def overheard(self, turn: int, *, limit: int) -> Overheard:
        """Read what others said around a turn's session since its last prompt."""
        ...

    async def said(self, surface: SessionKey, *, before: int, limit: int) -> Sequence[Entry]:
        """Read what people and agents said in the place of a surface, oldest first.

        These are the last ones before a row; each answer is one entry, whose speaker is the
        agent's id.
        """
        ...

    async def known(self, place: PlaceKey, message_ids: Sequence[str]) -> frozenset[str]:
        """Tell which of these messages of a place are kept."""
        ...

    async def history(self, session: int, *, before_turn: int, limit: int) -> Sequence[Entry]:
        """Read the last messages and answers of the current conversation, oldest first."""
        ...


class PostStore(Protocol):
    """Posts, from stored to sent."""

    async def say(self, new: NewPost, entry: Entry, *, most: int) -> int | None:
        """Store a post and its row of the transcript; returns the post, the same for the same key.

        None if there are `most` whose key differs only in its last part.
        """
        ...

    def post(self, post: int) -> Post | None:
        """Read one post."""
        ...

    def of_turn(self, turn: int) -> Post | None:
        """Read the post that shows a turn."""
        ...

    async def unsent(self) -> Sequence[Post]:
        """List the unsent posts, in order."""
        ...

    async def recent(
        self, only: ListFilter = EVERYTHING, *, before: int | None, limit: int
    ) -> Sequence[Post]:
        """List posts, the newest first."""
        ...

    async def show(self, post: int, content: PostContent) -> bool:
        """Keep what a post shows while its turn runs; False if it is not open any more."""
        ...

    def shown(self, post: int) -> PostContent | None:
        """Read what a post shows while its turn runs."""
        ...

    async def sent(self, post: int, sent: PostSent, *, final: bool) -> None:
        """Record what the platform made of a post."""
        ...

    async def failed(self, post: int, error: str) -> None:
        """Record that a post can never be sent and that its surface cannot be reached."""
        ...
