"""Takes agents' reviews: each is stored, then published under the reviewer's name, then told.

A review is a row before anything is sent. Every step after that can be repeated: a start repeats
what a crash cut off, the leader what another member left, and nothing is published or told twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from app.clock import Clock
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.repositories.forge import Forge
from app.core.together import wording
from app.core.together.diff_lines import find_outside, read_lines
from app.errors import Conflict, RepositoryError
from app.model.reviews import Finding, NewReview, Review, Subject, Submission, Verdict
from app.model.types import Session
from app.model.workspaces import Repository
from app.repos.checkouts import GitCheckouts
from app.retry import persist
from app.signals import ALONE, Signals
from app.store.groups import GroupStore
from app.store.reviews import ReviewStore
from app.store.sessions import SessionStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LATE_SECONDS = 300.0
"""How long a review may wait for the member that took it: longer than a platform takes."""
Home = Callable[[Review], Awaitable[tuple[int, str]]]
"""Tells where people see a review: the session of their place, and the agent that speaks there."""


class Reviews:
    """The reviews that agents give."""

    def __init__(
        self,
        store: ReviewStore,
        groups: GroupStore,
        sessions: SessionStore,
        checkouts: GitCheckouts,
        forge: Forge,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        *,
        redact: Callable[[str], str],
        names: Mapping[str, str],
        subject_of: Callable[[Session], Awaitable[Subject | None]],
        repository_of: Callable[[Session], Repository | None],
        home_of: Home,
        signals: Signals = ALONE,
    ) -> None:
        """Take reviews; `names` are agents' for people.

        `subject_of` tells what a session reviews, `repository_of` what it works on.
        """
        self._store = store
        self._groups = groups
        self._sessions = sessions
        self._checkouts = checkouts
        self._forge = forge
        self._outbox = outbox
        self._feed = feed
        self._clock = clock
        self._redact = redact
        self._names = names
        self._subject_of = subject_of
        self._repository_of = repository_of
        self._home_of = home_of
        self._tasks = Tasks("reviews")
        self._due: dict[int, float] = {}
        self._signals = signals
        signals.on_sweep(self._look_again)

    def start(self) -> None:
        """Publish what an earlier run of the bridge could not."""
        for review in self._store.unsent():
            self._tasks.start(self.publish(review), name=f"review {review.id}")

    async def close(self) -> None:
        """Stop publishing; the next start goes on."""
        await self._tasks.close()

    def _look_again(self) -> None:
        """Publish what the member that took it did not, since it is gone or was refused."""
        if not self._signals.is_leader:
            return
        now = self._clock.monotonic()
        waiting = {review.id: review for review in self._store.unsent()}
        self._due = {each: self._due.get(each, now + LATE_SECONDS) for each in waiting}
        for late in [each for each, due in self._due.items() if due <= now]:
            self._due[late] = now + LATE_SECONDS
            self._tasks.start(self.publish(waiting[late]), name=f"review {late}")

    async def submit(
        self,
        session: Session,
        turn: int,
        verdict: Verdict,
        *,
        body: str,
        findings: Sequence[Finding],
    ) -> Review:
        """Take the review of a turn, and publish it.

        Raises:
            Conflict: it says nothing, or comments on lines that are not in the diff.
        """
        known = self._store.of_turn(turn)
        if known is not None:
            return await self.publish(known)
        if verdict == "request_changes" and not body.strip() and not findings:
            raise Conflict(wording.EMPTY)
        try:
            subject = await self._subject_of(session)
            if subject is not None:
                subject = await self._check(subject, session.key.agent, findings)
        except RepositoryError as error:
            raise Conflict(str(error)) from error
        clean = tuple(replace(each, body=self._redact(each.body)) for each in findings)
        new = NewReview(session.id, turn, verdict, self._redact(body), clean, subject)
        return await self.publish(await persist(self._clock, self._store.give, new))

    async def _check(self, subject: Subject, agent: str, findings: Sequence[Finding]) -> Subject:
        """Check that comments are on lines of the diff; returns which commit that is of."""
        compared = await self._checkouts.compare(
            subject.repository, agent, subject.commit, subject.base
        )
        if compared is None:
            return subject
        shown = read_lines(compared.diff)
        outside = find_outside(findings, shown) if shown else ()
        if outside:
            raise Conflict(wording.refuse_lines(outside, shown))
        return replace(subject, commit=compared.commit)

    async def publish(self, review: Review) -> Review:
        """Put a review where it belongs, and tell people; both once."""
        session = self._sessions.session(review.session)
        if review.state == "sent" or session is None:
            return review
        problem, link = "", ""
        try:
            link = await self._put(review, session)
        except RepositoryError as error:
            logger.warning("the review %d is not published: %s", review.id, error)
            problem = str(error)
        review = replace(review, link=link, state="given" if problem else "sent")
        home, speaker = await self._home_of(review)
        if home != review.session or not link:
            name = self._names.get(session.key.agent, session.key.agent)
            words = wording.describe(review, name, problem)
            await self.tell(home, f"review:{review.id}", words, speaker)
        if not problem:
            await persist(self._clock, self._store.sent, review.id, link)
        return review

    async def tell(self, session: int, mark: str, words: str, agent: str = "") -> None:
        """Say something once where a session began."""
        clean = self._redact(words)
        posts = await persist(self._clock, self._groups.tell, session, mark, clean, agent)
        self._outbox.send(*posts)
        self._feed.notify(session)

    async def _put(self, review: Review, session: Session) -> str:
        """Publish a review on the platform of its repository; returns its link, if it has one."""
        repository = self._repository_of(session)
        if not review.branch or repository is None:
            return ""
        submission = Submission(
            repository,
            session.key.agent,
            review.branch,
            review.commit,
            review.verdict,
            review.body,
            review.findings,
            f"review:{review.id}",
        )
        return await self._forge.review(submission) or ""
