"""Follows proposals: checks, conflicts, merge or close; told once, where the work began.

Nothing starts by itself: after a failure a fix is offered, and a person accepts it or not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from app.clock import Clock
from app.core.adapters import Adapter
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.repositories.ports import Checkouts
from app.errors import RepositoryError
from app.model import repository_wording as wording
from app.model.inbound import News
from app.model.offers import offer
from app.model.reasons import Reason
from app.model.updates import AskRequest
from app.model.workspaces import Checked, Proposed
from app.retry import persist, retry
from app.store.proposals import ProposalStore

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
        proposals: ProposalStore,
        checkouts: Checkouts,
        ledger: Ledger,
        outbox: Outbox,
        feed: Feed,
        *,
        adapters: Mapping[str, Adapter],
        clock: Clock,
        offer_seconds: float,
        look: Callable[[int], None] = lambda _session: None,
    ) -> None:
        """Follow them; `look` has the state of a session's proposal read again."""
        self._proposals = proposals
        self._checkouts = checkouts
        self._ledger = ledger
        self._outbox = outbox
        self._feed = feed
        self._adapters = adapters
        self._clock = clock
        self._offer_seconds = offer_seconds
        self._look = look

    async def take(self, adapter_name: str, news: News) -> Reason:
        """Report news about this agent's proposals; returns whether it was about any.

        Raises:
            PostError: the platform does not tell the state.
        """
        adapter = self._adapters[adapter_name]
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
        await persist(self._clock, self._proposals.settle, proposed, outcome)
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
        return await retry(self._clock, lambda: adapter.checked(news), LOOK_SECONDS)

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
            self._clock,
            self._proposals.tell,
            proposed,
            f"{proposed.branch}:{mark}",
            self._outbox.redact(words),
            offer=self._ledger.present(request) if request else None,
            deadline=self._clock.now() + self._offer_seconds,
            passed=passed,
        )
        self._outbox.send(*posts)
        self._feed.notify(proposed.session)
