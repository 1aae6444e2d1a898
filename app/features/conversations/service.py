"""Manages whole conversations: rename, pin, archive, clear, fork, delete.

A deletion is marked before anything is removed, so that a start finishes what a crash left of it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

from typing_extensions import override

from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict, NotFound, StoreUnavailable
from app.features.conversations.store import ConversationChanges
from app.features.part import Part
from app.model import wording
from app.model.conversations import Contents, Copied, Holdings
from app.model.keys import PlaceKey
from app.model.posts import Note, NoteCode
from app.model.types import Thread
from app.model.workspaces import Unshipped
from app.retry import persist
from app.signals import Facts, Topic
from app.store.upkeep import DAY_SECONDS

logger = logging.getLogger(__name__)

LEADER_SECONDS = 240.0
"""How long the leader may take to clear or delete a conversation for another member."""
ATTEMPTS = 3
"""How often turns are stopped: a late answer to a question may begin another one."""
THREAD_CHARACTERS = 12
"""Characters of a fork's name, as many as those of a new thread."""
EXPIRED_AT_ONCE = 500
"""Old conversations that are deleted in one round; the others go in the next one."""


class Conversations(Part):
    """What people do with a whole conversation, on every service."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._changes = runtime.stores.open(ConversationChanges)
        self._stored = runtime.stores.conversations
        self._clock = runtime.clock
        runtime.signals.answer(Topic.CONVERSATION, self._answer)

    @override
    async def recover(self) -> None:
        """Finish the deletions that a crash cut off."""
        for place in await self._changes.doomed():
            try:
                await self._finish(place)
            except (Conflict, OSError) as error:
                logger.warning("%s is not deleted yet: %s", place.service, error)

    async def find(self, number: int) -> Thread:
        """Read a conversation by its number.

        Raises:
            NotFound: there is none.
        """
        place = self._stored.find(number)
        thread = None if place is None else await self._stored.thread(place)
        if thread is None:
            raise NotFound("conversation", number)
        return thread

    async def read(self, place: PlaceKey) -> Thread:
        """Read a conversation.

        Raises:
            NotFound: there is none.
        """
        thread = await self._stored.thread(place)
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
        await persist(self._clock, self._changes.rename, place, title, note)
        self._notify(place)

    async def pin(self, place: PlaceKey, *, pinned: bool) -> None:
        """Keep a conversation on top of the list, or no longer.

        Raises:
            NotFound: there is none.
        """
        await self.read(place)
        await persist(self._clock, self._changes.pin, place, pinned=pinned)
        self._notify(place)

    async def archive(self, place: PlaceKey, *, archived: bool) -> None:
        """Take a conversation out of the list until something is said in it, or put it back.

        Raises:
            NotFound: there is none.
        """
        await self.read(place)
        await persist(self._clock, self._changes.archive, place, archived=archived)
        self._notify(place)

    async def contents(self, place: PlaceKey) -> Contents:
        """Tell what would be deleted with a conversation.

        Raises:
            NotFound: there is none.
        """
        thread = await self.read(place)
        held = await self._holdings(place)
        found = [self.runtime.stores.sessions.session(each) for each in held.sessions]
        sessions = [each for each in found if each is not None]
        size, unshipped = await self._measure(held.sessions)
        return Contents(
            thread,
            held,
            size,
            tuple(unshipped),
            tuple(self.runtime.workspaces.describe(each) for each in sessions),
        )

    async def clear(self, place: PlaceKey, by: str) -> None:
        """Delete what was said, and let every agent start over.

        Raises:
            NotFound: there is no such conversation.
            Conflict: its work does not stop, it belongs to another one, or agents that work for it
                hold work that is nowhere else.
        """
        await self.read(place)
        if not self.runtime.signals.is_leader:
            await self._ask_leader(place, by=by)
            return
        note = Note(NoteCode.CLEARED, by)
        held = await self._own(place)
        if work := (await self._measure(held.children))[1]:
            raise Conflict(
                f"agents that were asked here hold work that is nowhere else ({_listed(work)}). "
                "Ship that first"
            )
        async with self._at_rest(held):
            for _ in range(ATTEMPTS):
                await self._stop(held)
                await self._remove_files(held, said=True)
                await self._remove(held.children)
                posts = await persist(self._clock, self._changes.clear, place, note)
                if posts is not None:
                    break
            else:
                raise Conflict("its agents keep working; stop them and try again")
        await self._compact()
        self.runtime.outbox.send(*posts)
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
        copied = await persist(
            self._clock, self._changes.fork, place, new, after=after, title=title
        )
        if copied is None:
            raise NotFound("message", after or 0)
        without = [each.agent for each in copied if not await self._adopt(each)]
        names = ", ".join(self.runtime.agents.names.get(each, each) for each in without)
        code = NoteCode.FORKED if without else NoteCode.FORKED_WHOLE
        await persist(self._clock, self._changes.say, new, Note(code, names, old))
        self._notify(new)
        return new

    async def delete(self, place: PlaceKey, *, discard: bool = False) -> None:
        """Delete a conversation with everything that it left in the store and on disk.

        Raises:
            NotFound: there is no such conversation.
            Conflict: it holds work that is nowhere else and may not be discarded, its work does not
                stop, or it belongs to another conversation.
        """
        if not self.runtime.signals.is_leader:
            await self._ask_leader(place, discard=discard)
            return
        found = await self.contents(place)
        await self._own(place)
        if found.unshipped and not discard:
            raise Conflict(
                f"it holds work that is nowhere else ({_listed(found.unshipped)}). Ship that, or "
                "say that it may be discarded"
            )
        await persist(self._clock, self._changes.doom, place)
        await self._finish(place)

    @override
    async def expire(self) -> None:
        """Delete conversations that were not used for as long as the operator says.

        One that holds work that is nowhere else stays, and so does a pinned one.
        """
        days = self.runtime.configuration.settings.retention_conversations_days
        if days is None:
            return
        gone, before = 0, self._clock.now() - days * DAY_SECONDS
        for place in await self._changes.unused(before, limit=EXPIRED_AT_ONCE):
            try:
                held = await self._own(place)
                _, unshipped = await self._measure(held.sessions)
                if unshipped:
                    continue
                await persist(self._clock, self._changes.doom, place)
                await self._erase(place)
            except (BridgeError, OSError) as error:
                logger.warning("a conversation on %s is kept: %s", place.service, error)
            else:
                gone += 1
        if gone:
            await self._compact()
            logger.info("deleted %d old conversations", gone)

    async def _finish(self, place: PlaceKey) -> None:
        await self._erase(place)
        await self._compact()

    async def _erase(self, place: PlaceKey) -> None:
        held = await self._holdings(place)
        async with self._at_rest(held):
            for _ in range(ATTEMPTS):
                await self._stop(held)
                await self._remove_files(held)
                if await persist(self._clock, self._changes.erase, place):
                    break
            else:
                raise Conflict("its agents keep working; stop them and try again")
        self._notify(place)

    async def _ask_leader(self, place: PlaceKey, **wanted: str | bool) -> None:
        """Have the leader clear or delete a conversation: only it can hold back messages."""
        where = [place.service, place.name]
        try:
            answers = await self.runtime.signals.ask(
                Topic.CONVERSATION, seconds=LEADER_SECONDS, place=where, **wanted
            )
        except TimeoutError:
            raise Conflict("it takes too long; look again later") from None
        said = next(filter(None, answers), None)
        if said is None:
            raise Conflict("there is no leader just now; try again in a moment")
        if "missing" in said:
            raise NotFound("conversation", place.name)
        if "conflict" in said:
            raise Conflict(said["conflict"])

    async def _answer(self, facts: Facts) -> Facts:
        """Clear or delete a conversation for another member, as the leader."""
        if not self.runtime.signals.is_leader:
            return {}
        place = PlaceKey(*facts["place"])
        try:
            if "by" in facts:
                await self.clear(place, facts["by"])
            else:
                await self.delete(place, discard=facts["discard"])
        except NotFound:
            return {"missing": True}
        except (Conflict, OSError) as error:
            return {"conflict": str(error)}
        return {"done": True}

    async def _measure(self, sessions: Sequence[int]) -> tuple[int, list[Unshipped]]:
        """Tell how many bytes sessions take, and list their work that is nowhere else."""
        try:
            return await self.runtime.reach.measure(sessions)
        except TimeoutError:
            raise Conflict("a machine does not say what it holds; try again later") from None

    async def _own(self, place: PlaceKey) -> Holdings:
        """Tell what is stored of a conversation, unless a session in it began in another one."""
        held = await self._holdings(place)
        if held.elsewhere is not None:
            owner = await self._stored.thread(held.elsewhere)
            title = owner.named or owner.title if owner is not None else held.elsewhere.name
            raise Conflict(f"its agents work for another conversation, {title!r}. Choose that one")
        return held

    async def _holdings(self, place: PlaceKey) -> Holdings:
        held = await self._changes.holdings(place)
        if held is None:
            raise NotFound("conversation", place.name)
        return held

    @asynccontextmanager
    async def _at_rest(self, held: Holdings) -> AsyncIterator[None]:
        """Hold back what is said in a conversation meanwhile."""
        async with AsyncExitStack() as stack:
            try:
                for each in held.places:
                    await stack.enter_async_context(self.runtime.intake.pause(each))
            except TimeoutError:
                raise Conflict("a message there is being handled; try again later") from None
            yield

    async def _stop(self, held: Holdings) -> None:
        """Stop all turns, and end the agents' processes."""
        for session in held.sessions:
            await self.runtime.end_work(session, drop=True)

    async def _remove_files(self, held: Holdings, *, said: bool = False) -> None:
        """Remove files of sessions, and the uploads that no other conversation names."""
        own = {url.partition("/")[0] for url in held.uploads}
        copied = await self._remove(held.sessions, held.conversations, said=said)
        await self.runtime.reach.remove_uploads((copied | own) - held.shared)

    async def _remove(
        self, sessions: Sequence[int], conversations: Sequence[str] = (), *, said: bool = False
    ) -> set[str]:
        try:
            return await self.runtime.reach.remove(sessions, conversations, said=said)
        except TimeoutError:
            raise Conflict("a machine does not remove its files; try again later") from None

    async def _adopt(self, copied: Copied) -> bool:
        """Give a forked session a copy of its agent's own conversation, if there is one."""
        if copied.acp_session_id is None:
            return False
        try:
            found = await self.runtime.reach.copy_home(copied.agent, copied.origin, copied.session)
        except OSError as error:
            logger.warning("could not copy the home of session %d: %s", copied.origin, error)
            found = False
        if found:
            await persist(self._clock, self._changes.adopt, copied.session, copied.acp_session_id)
        return found

    async def _compact(self) -> None:
        """Leave nothing of deleted rows in the files of the store."""
        try:
            await self.runtime.database.compact()
        except StoreUnavailable as error:
            logger.warning("deleted text may stay in the store's log until a restart: %s", error)

    def _notify(self, place: PlaceKey) -> None:
        self.runtime.feed.notify_place(place)


def _listed(work: Sequence[Unshipped]) -> str:
    return ", ".join(f"{each.repository}: {each.held}" for each in work)
