"""Follows what happens to work: how much changed, what became of its proposal, a new name.

Reading takes git and the network, so it happens in the background; pages show what was kept. What
becomes of a proposal is told once, where the work began. Nothing starts by itself: after a failure
a fix is offered, and a person accepts it or not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.core.adapters import Adapter
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory
from app.core.repositories.forge import Forge
from app.errors import BridgeError, PostDelayed, RepositoryError
from app.model.asks import offer
from app.model.inbound import Naming, News, Reason, Renamed
from app.model.proposals import Checked, Proposed
from app.model.types import Session
from app.model.updates import AskRequest
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts
from app.retry import Retries, persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

MOST_TRIES = 3
"""Fixes offered in a row: what three did not fix needs a person."""
LISTED = 50
"""Files that an excerpt names."""
LOOK_SECONDS = (5.0, 30.0, 120.0, 600.0)
"""Pauses between retries, where the platform does not say."""


class Proposals:
    """Follows the proposals of all agents."""

    def __init__(
        self,
        base: Base,
        checkouts: GitCheckouts,
        ledger: Ledger,
        outbox: Outbox,
        feed: Feed,
        *,
        offer_seconds: float,
        look: Callable[[int], None] = lambda _session: None,
    ) -> None:
        """Follow them; `look` has the state of a session's proposal read again."""
        self._base = base
        self._proposals = base.stores.proposals
        self._checkouts = checkouts
        self._ledger = ledger
        self._outbox = outbox
        self._feed = feed
        self._offer_seconds = offer_seconds
        self._look = look

    async def take(self, adapter_name: str, news: News) -> Reason:
        """Report news about this agent's proposals; returns whether it was about any.

        Raises:
            PostError: the platform does not tell the state.
        """
        adapter = self._base.adapters[adapter_name]
        if news.kind == "moved":
            found = self._proposals.onto(adapter.agent, news.repository, news.branch)
            for each in found:
                await self._look_for_conflicts(each, adapter.agent)
            return Reason.NEWS if found else Reason.NOTHING_PROPOSED
        proposed = self._proposals.find(adapter.agent, news.repository, news.branch)
        if proposed is None:
            return Reason.NOTHING_PROPOSED
        self._look(proposed.session)
        if news.kind == "checked":
            await self._look_at_checks(adapter, news, proposed)
        elif news.kind != "reviewed":
            await self._end(news, proposed)
        return Reason.NEWS

    async def _end(self, news: News, proposed: Proposed) -> None:
        outcome = "" if news.kind == "reopened" else news.kind
        await persist(self._base.clock, self._proposals.settle, proposed, outcome)
        if outcome:
            words = wording.MERGED if outcome == "merged" else wording.CLOSED
            await self._tell(proposed, f"{outcome}:{news.mark}", words.format(link=news.link))

    async def _look_at_checks(self, adapter: Adapter, news: News, proposed: Proposed) -> None:
        if proposed.outcome:
            return
        checked = await self._read_checks(adapter, news)
        if checked is None:
            return
        if not checked.failed:
            words = wording.CHECKS_PASSED.format(link=checked.link)
            await self._tell(proposed, f"passed:{checked.commit}", words, passed=True)
            return
        names = wording.some(checked.failed)
        words = wording.CHECKS_FAILED.format(link=checked.link, names=names)
        await self._offer(
            proposed, f"failed:{checked.commit}", words, checked.excerpt, wording.FIX_CHECKS
        )

    async def _read_checks(self, adapter: Adapter, news: News) -> Checked | None:
        """Read how checks ended; retried while the platform cannot tell."""
        retries = Retries(self._base.clock, LOOK_SECONDS)
        while True:
            try:
                return await adapter.checked(news)
            except PostDelayed as error:
                await retries.wait(error)

    async def _look_for_conflicts(self, proposed: Proposed, agent: str) -> None:
        try:
            found = await self._checkouts.collisions(
                proposed.repository, agent, proposed.base, proposed.branch
            )
        except RepositoryError as error:
            logger.warning("could not check %s for conflicts: %s", proposed.link, error)
            return
        if found is None or not found[1]:
            return
        commit, files = found
        words = wording.CONFLICTS_NOW.format(
            link=proposed.link, base=proposed.base, files=wording.some(files)
        )
        listed = "\n".join(files[:LISTED])
        await self._offer(proposed, f"conflict:{commit}", words, listed, wording.RESOLVE_CONFLICT)

    async def _offer(
        self, proposed: Proposed, mark: str, words: str, excerpt: str, deed: str
    ) -> None:
        if proposed.tries >= MOST_TRIES:
            await self._tell(proposed, mark, f"{words} {wording.NO_MORE_FIXES}")
            return
        request = offer(proposed.branch, words, excerpt, deed)
        await self._tell(proposed, mark, words, request=request)
        self._ledger.watch()

    async def _tell(
        self,
        proposed: Proposed,
        mark: str,
        words: str,
        *,
        request: AskRequest | None = None,
        passed: bool = False,
    ) -> None:
        posts = await persist(
            self._base.clock,
            self._proposals.tell,
            proposed,
            f"{proposed.branch}:{mark}",
            self._outbox.redact(words),
            offer=self._ledger.present(request) if request else None,
            deadline=self._base.clock.now() + self._offer_seconds,
            passed=passed,
        )
        self._outbox.send(*posts)
        self._feed.notify(proposed.session)


AGAIN_SECONDS = 60.0
"""How old a state is before an open page has it read again: webhooks report most changes."""


class WorkProgress:
    """Reads and keeps the state of sessions' work."""

    def __init__(
        self,
        base: Base,
        clones: Clones,
        feed: Feed,
        forge: Forge | None,
    ) -> None:
        self._base = base
        self._sessions = base.stores.sessions
        self._records = base.stores.checkouts
        self._clones = clones
        self._feed = feed
        self._forge = forge
        self._tasks = Tasks("state of work")
        self._again: dict[int, bool] = {}
        """The sessions that are read just now, and whether to read them once more."""
        self._read_at: dict[int, float] = {}

    def look(self, session_id: int) -> None:
        """Read the state of a session's work soon."""
        if session_id in self._again:
            self._again[session_id] = True
        elif self._records.latest(session_id) is not None:
            self._again[session_id] = False
            self._tasks.start(self._look(session_id), name=f"session {session_id}")

    def look_if_old(self, session_id: int) -> None:
        """Read it for a page that was opened, unless it was read just now."""
        last = self._read_at.get(session_id)
        if last is None or self._base.clock.monotonic() - last >= AGAIN_SECONDS:
            self.look(session_id)

    async def close(self) -> None:
        """Stop reading."""
        await self._tasks.close()

    async def _look(self, session_id: int) -> None:
        try:
            while True:
                self._again[session_id] = False
                self._read_at[session_id] = self._base.clock.monotonic()
                session = self._sessions.session(session_id)
                if session is not None:
                    await self._read(session)
                if not self._again[session_id]:
                    return
        finally:
            del self._again[session_id]

    async def _read(self, session: Session) -> None:
        try:
            await self._clones.measure(session)
            await self._read_proposal(session)
        except BridgeError as error:
            logger.info("cannot read the state of %s's work: %s", session.key, error)
        self._feed.notify(session.id)

    async def _read_proposal(self, session: Session) -> None:
        record = self._records.latest(session.id)
        if self._forge is None or record is None or not record.link or record.outcome:
            return
        found = await self._forge.judged(record.repository, session.key.agent, record.branch)
        if found is not None:
            await persist(self._base.clock, self._records.judged, session.id, record.number, found)


class Renames:
    """Follows changes of repository names."""

    def __init__(self, base: Base, checkouts: GitCheckouts, directory: Directory) -> None:
        self._base = base
        self._names = base.stores.names
        self._checkouts = checkouts
        self._directory = directory
        self._order = asyncio.Lock()

    async def follow(self, naming: Naming) -> None:
        """Record a repository's name; everything with the old name gets the new one."""
        if self._names.of(naming.host, naming.number) == naming.name:
            return
        async with self._order:
            # Mirrors first: after a crash before the commit, all of it is repeated.
            for renamed in self._names.plan(naming):
                logger.info("%s is now called %s", renamed.old, renamed.new)
                await self._move_clones(renamed)
                for adapter in self._base.adapters.values():
                    adapter.renamed(renamed.old)
            await persist(self._base.clock, self._names.follow, naming)

    async def _move_clones(self, renamed: Renamed) -> None:
        """Keep what is on disk; if that fails, the next turn makes another clone and says so."""
        old, new = map(self._directory.repository, (renamed.old, renamed.new))
        try:
            await self._checkouts.rename(old, new)
        except OSError as error:
            logger.warning("could not keep the mirror of %s: %s", renamed.new, error)
