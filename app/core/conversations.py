"""Manages whole conversations: rename, pin, archive, clear, fork, delete.

A deletion is marked before anything is removed, so that a start finishes what a crash left of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol
from uuid import uuid4

from app.core import wording
from app.core.feed import Feed
from app.core.keys import PlaceKey
from app.core.notes import Note, NoteCode
from app.core.outbox import Outbox
from app.core.ports import Clock
from app.core.repo_provider import RepoProvider
from app.core.retry import persist
from app.core.session_manager import SessionManager
from app.core.stores.conversations import Contents, ConversationStore, Copied, Holdings
from app.core.stores.sessions import SessionStore
from app.core.turns.agents import LiveAgents
from app.core.types import Thread
from app.core.workspaces import Unshipped
from app.errors import Conflict, NotFound, StoreUnavailable

logger = logging.getLogger(__name__)

STOP_SECONDS = 30.0
"""How long the turns of a conversation may take to stop."""
ATTEMPTS = 3
"""How often turns are stopped: a late answer to a question may begin another one."""
THREAD_CHARACTERS = 12
"""Characters of a fork's name, as many as those of a new thread."""


class Traces(Protocol):
    """What sessions leave on disk; each method may take a while."""

    def measure(self, sessions: Collection[int]) -> int:
        """Return how many bytes sessions take."""
        ...

    def remove(self, sessions: Collection[int], conversations: Collection[str]) -> None:
        """Remove every folder of sessions."""
        ...

    def remove_said(self, sessions: Collection[int], conversations: Collection[str]) -> None:
        """Remove the homes of sessions and the files of their messages; their work stays."""
        ...

    def find_uploads(self, sessions: Collection[int]) -> set[str]:
        """Name the uploads that were copied for sessions, by their folder."""
        ...

    def remove_uploads(self, folders: Collection[str]) -> None:
        """Remove uploads."""
        ...

    def copy_home(self, agent: str, origin: int, new: int) -> bool:
        """Copy a session's home for another one; False if there is none to copy."""
        ...


Pause = Callable[[PlaceKey], AbstractAsyncContextManager[None]]


class Conversations:
    """What people do with a whole conversation, on every service."""

    def __init__(
        self,
        store: ConversationStore,
        sessions: SessionStore,
        manager: SessionManager,
        live: LiveAgents,
        workspaces: RepoProvider,
        traces: Traces,
        *,
        ended: Callable[[int], Awaitable[None]],
        pause: Pause,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        names: Mapping[str, str],
    ) -> None:
        """Manage; `ended` waits until no turn of a session runs, `pause` holds back messages."""
        self._store = store
        self._sessions = sessions
        self._manager = manager
        self._live = live
        self._workspaces = workspaces
        self._traces = traces
        self._ended = ended
        self._pause = pause
        self._outbox = outbox
        self._feed = feed
        self._clock = clock
        self._names = names

    async def find(self, number: int) -> Thread:
        """Read a conversation by its number.

        Raises:
            NotFound: there is none.
        """
        place = self._store.find(number)
        thread = None if place is None else await self._store.thread(place)
        if thread is None:
            raise NotFound("conversation", number)
        return thread

    async def read(self, place: PlaceKey) -> Thread:
        """Read a conversation.

        Raises:
            NotFound: there is none.
        """
        thread = await self._store.thread(place)
        if thread is None:
            raise NotFound("conversation", place.name)
        return thread

    async def rename(self, place: PlaceKey, title: str, by: str) -> None:
        """Give a conversation a title that agents do not change.

        Raises:
            NotFound: there is none.
        """
        await self.read(place)
        title = " ".join(title.split())
        note = Note(NoteCode.RENAMED, by, title)
        await persist(self._clock, self._store.rename, place, title, note)
        self._notify(place)

    async def pin(self, place: PlaceKey, *, pinned: bool) -> None:
        """Keep a conversation on top of the list, or no longer.

        Raises:
            NotFound: there is none.
        """
        await self.read(place)
        await persist(self._clock, self._store.pin, place, pinned=pinned)
        self._notify(place)

    async def archive(self, place: PlaceKey, *, archived: bool) -> None:
        """Take a conversation out of the list until something is said in it, or put it back.

        Raises:
            NotFound: there is none.
        """
        await self.read(place)
        await persist(self._clock, self._store.archive, place, archived=archived)
        self._notify(place)

    async def contents(self, place: PlaceKey) -> Contents:
        """Tell what would be deleted with a conversation.

        Raises:
            NotFound: there is none.
        """
        thread = await self.read(place)
        held = await self._holdings(place)
        found = [self._sessions.session(each) for each in held.sessions]
        sessions = [each for each in found if each is not None]
        unshipped = await self._find_unshipped(held.sessions)
        return Contents(
            thread,
            held,
            await asyncio.to_thread(self._traces.measure, held.sessions),
            tuple(unshipped),
            tuple(self._workspaces.describe(each) for each in sessions),
        )

    async def clear(self, place: PlaceKey, by: str) -> None:
        """Delete what was said, and let every agent start over.

        Raises:
            NotFound: there is no such conversation.
            Conflict: its work does not stop, it belongs to another one, or agents that work for it
                hold work that is nowhere else.
        """
        await self.read(place)
        note = Note(NoteCode.CLEARED, by)
        held = await self._own(place)
        if work := await self._find_unshipped(held.children):
            raise Conflict(
                f"agents that were asked here hold work that is nowhere else ({_listed(work)}). "
                "Ship that first"
            )
        async with self._at_rest(held):
            for _ in range(ATTEMPTS):
                await self._stop(held)
                await self._remove_files(held, self._traces.remove_said)
                await asyncio.to_thread(self._traces.remove, held.children, ())
                posts = await persist(self._clock, self._store.clear, place, note)
                if posts is not None:
                    break
            else:
                raise Conflict("its agents keep working; stop them and try again")
        await self._compact()
        self._outbox.send(*posts)
        self._notify(place)

    async def fork(self, place: PlaceKey, service: str, *, after: int | None = None) -> PlaceKey:
        """Copy a conversation up to a row into a new one on a service.

        An agent continues its own conversation if nothing was said in it after that row; else it
        gets the transcript.

        Raises:
            NotFound: there is no such conversation, or nothing in it up to that row.
        """
        thread = await self.read(place)
        new = PlaceKey(service, uuid4().hex[:THREAD_CHARACTERS])
        old = thread.named or thread.title or place.name
        title = wording.FORK_TITLE.format(title=old)
        copied = await persist(self._clock, self._store.fork, place, new, after=after, title=title)
        if copied is None:
            raise NotFound("message", after or 0)
        without = [each.agent for each in copied if not await self._adopt(each)]
        names = ", ".join(self._names.get(each, each) for each in without)
        code = NoteCode.FORKED if without else NoteCode.FORKED_WHOLE
        await persist(self._clock, self._store.say, new, Note(code, names, old))
        self._notify(new)
        return new

    async def delete(self, place: PlaceKey, *, discard: bool = False) -> None:
        """Delete a conversation with everything that it left in the store and on disk.

        Raises:
            NotFound: there is no such conversation.
            Conflict: it holds work that is nowhere else and may not be discarded, its work does not
                stop, or it belongs to another conversation.
        """
        found = await self.contents(place)
        await self._own(place)
        if found.unshipped and not discard:
            raise Conflict(
                f"it holds work that is nowhere else ({_listed(found.unshipped)}). Ship that, or "
                "say that it may be discarded"
            )
        await persist(self._clock, self._store.doom, place)
        await self._finish(place)

    async def finish(self) -> None:
        """Finish the deletions that a crash cut off."""
        for place in await self._store.doomed():
            try:
                await self._finish(place)
            except (Conflict, OSError) as error:
                logger.warning("%s is not deleted yet: %s", place.service, error)

    async def _finish(self, place: PlaceKey) -> None:
        held = await self._holdings(place)
        async with self._at_rest(held):
            for _ in range(ATTEMPTS):
                await self._stop(held)
                await self._remove_files(held, self._traces.remove)
                if await persist(self._clock, self._store.erase, place):
                    break
            else:
                raise Conflict("its agents keep working; stop them and try again")
        await self._compact()
        self._notify(place)

    async def _find_unshipped(self, sessions: Sequence[int]) -> list[Unshipped]:
        """List the work of sessions that is nowhere else."""
        known = [self._sessions.session(each) for each in sessions]
        return [
            work
            for each in known
            if each is not None
            for work in await self._workspaces.unshipped(each)
        ]

    async def _own(self, place: PlaceKey) -> Holdings:
        """Tell what is stored of a conversation, unless a session in it began in another one."""
        held = await self._holdings(place)
        if held.elsewhere is not None:
            owner = await self._store.thread(held.elsewhere)
            title = owner.named or owner.title if owner is not None else held.elsewhere.name
            raise Conflict(f"its agents work for another conversation, {title!r}. Choose that one")
        return held

    async def _holdings(self, place: PlaceKey) -> Holdings:
        held = await self._store.holdings(place)
        if held is None:
            raise NotFound("conversation", place.name)
        return held

    @asynccontextmanager
    async def _at_rest(self, held: Holdings) -> AsyncIterator[None]:
        """Hold back what is said in a conversation meanwhile."""
        async with AsyncExitStack() as stack:
            try:
                for each in held.places:
                    await stack.enter_async_context(self._pause(each))
            except TimeoutError:
                raise Conflict("a message there is being handled; try again later") from None
            yield

    async def _stop(self, held: Holdings) -> None:
        """Stop all turns, and end the agents' processes."""
        for session in held.sessions:
            await self.end_work(session, drop=True)

    async def end_work(self, session: int, *, drop: bool = False) -> None:
        """Stop the turn of a session, and end its agent's process.

        Raises:
            NotFound: there is no such session.
            Conflict: the turn does not stop.
        """
        await self._manager.stop(session, drop=drop)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._ended(session)
        except TimeoutError:
            raise Conflict("its work does not stop; try again later") from None
        await self._live.end(session)

    async def _remove_files(
        self, held: Holdings, remove: Callable[[Sequence[int], Sequence[str]], None]
    ) -> None:
        """Remove files of sessions, and the uploads that no other conversation names."""
        copied = await asyncio.to_thread(self._traces.find_uploads, held.sessions)
        own = {url.partition("/")[0] for url in held.uploads}
        await asyncio.to_thread(remove, held.sessions, held.conversations)
        await asyncio.to_thread(self._traces.remove_uploads, (copied | own) - held.shared)

    async def _adopt(self, copied: Copied) -> bool:
        """Give a forked session a copy of its agent's own conversation, if there is one."""
        if copied.acp_session_id is None:
            return False
        try:
            found = await asyncio.to_thread(
                self._traces.copy_home, copied.agent, copied.origin, copied.session
            )
        except OSError as error:
            logger.warning("could not copy the home of session %d: %s", copied.origin, error)
            found = False
        if found:
            await persist(self._clock, self._store.adopt, copied.session, copied.acp_session_id)
        return found

    async def _compact(self) -> None:
        """Leave nothing of deleted rows in the files of the store."""
        try:
            await self._store.compact()
        except StoreUnavailable as error:
            logger.warning("deleted text may stay in the store's log until a restart: %s", error)

    def _notify(self, place: PlaceKey) -> None:
        self._feed.notify_place(place)


def _listed(work: Sequence[Unshipped]) -> str:
    return ", ".join(f"{each.repository}: {each.held}" for each in work)
