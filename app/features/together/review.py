"""Runs reviews: takes verdicts, and has reviewer and author go on in rounds until people decide.

A verdict is a row before anything is sent. The state of a review in rounds is in its rows too: the
delegations of its group, in turn to the reviewer and to the author, and the verdicts. Every step
can be repeated: a start repeats what a crash cut off, the leader what another member left, and
nothing is published or told twice.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from app.clock import Clock
from app.core.repo_provider import RepoProvider
from app.core.repositories.forge import Forge
from app.core.runtime import Runtime
from app.errors import Conflict, RepositoryError
from app.features.together import wording
from app.features.together.group import Announcer, Grouping
from app.features.together.model import NewReview, Review, find_outside, read_lines
from app.features.together.store import ReviewStore
from app.model.delegation import Delegation, NewDelegation
from app.model.proposals import ReviewFinding, Subject, Submission, Verdict
from app.model.types import Session, SessionState, Speaker, TurnState
from app.model.workspaces import Checkout
from app.repos.checkouts import GitCheckouts
from app.retry import persist
from app.signals import ALONE, Signals
from app.store.sessions import SessionStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

AT_WORK = {SessionState.WORKING, SessionState.WAITING, SessionState.QUEUED}
TASK_CHARACTERS = 8_000
"""What a reviewer is told of the task: the last three pages."""
LATE_SECONDS = 300.0
"""How long a review may wait for the member that took it: longer than a platform takes."""
Home = Callable[[Review], Awaitable[tuple[int, str]]]
"""Tells where people see a review: the session of their place, and the agent that speaks there."""


class Reviews:
    """The reviews that agents give."""

    def __init__(
        self,
        store: ReviewStore,
        announcer: Announcer,
        sessions: SessionStore,
        workspaces: RepoProvider,
        checkouts: GitCheckouts,
        forge: Forge,
        clock: Clock,
        *,
        names: Mapping[str, str],
        home_of: Home,
        signals: Signals = ALONE,
    ) -> None:
        """Take reviews; `names` are agents' for people."""
        self._store = store
        self._announcer = announcer
        self._sessions = sessions
        self._workspaces = workspaces
        self._checkouts = checkouts
        self._forge = forge
        self._clock = clock
        self._names = names
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
        findings: Sequence[ReviewFinding],
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
            subject = await self._workspaces.find_subject(session)
            if subject is not None:
                subject = await self._check(subject, session.key.agent, findings)
        except RepositoryError as error:
            raise Conflict(str(error)) from error
        redact = self._announcer.redact
        clean = tuple(replace(each, body=redact(each.body)) for each in findings)
        new = NewReview(session.id, turn, verdict, redact(body), clean, subject)
        return await self.publish(await persist(self._clock, self._store.give, new))

    async def _check(
        self, subject: Subject, agent: str, findings: Sequence[ReviewFinding]
    ) -> Subject:
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
            await self._announcer.tell(home, f"review:{review.id}", words, speaker)
        if not problem:
            await persist(self._clock, self._store.sent, review.id, link)
        return review

    async def _put(self, review: Review, session: Session) -> str:
        """Publish a review on the platform of its repository; returns its link, if it has one."""
        repository = self._workspaces.repository(session)
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


class ReviewLoop:
    """The reviews in rounds."""

    def __init__(self, runtime: Runtime, grouping: Grouping, reviews: ReviewStore) -> None:
        self._runtime = runtime
        self._checkouts = runtime.stores.checkouts
        self._grouping = grouping
        self._reviews = reviews

    def find_author(self, place: Sequence[Session], reviewer: str) -> Session:
        """Find the session whose work is to be reviewed: the one that pushed last.

        Raises:
            Conflict: there is none, or it is at work.
        """
        others = {each.id: each for each in place if each.key.agent != reviewer}
        known = self._checkouts.in_place(place[0].place) if place else ()
        for record in known:
            if record.session in others and record.branch and record.sent:
                author = others[record.session]
                if author.state in AT_WORK:
                    name = self._grouping.name_of(author.key.agent)
                    raise Conflict(wording.AUTHOR_AT_WORK.format(agent=name))
                return author
        raise Conflict(wording.NOTHING_PUSHED.format(agent=self._grouping.name_of(reviewer)))

    async def begin(
        self,
        group: str,
        author: Session,
        reviewer: str,
        person: Speaker,
        *,
        turn: int | None = None,
        notes: str = "",
        service: str = "",
    ) -> str:
        """Begin a review, for a person's command or for the author's own turn; returns what to say.

        `service` is the one on which a person gave the command.

        Raises:
            Conflict: it cannot begin.
        """
        record = self._work_of(author)
        found = await self._grouping.admit(reviewer, person, author, service)
        if not self._grouping.rows.in_group(group):
            new = await self._ask_reviewer(group, author, record, reviewer, person, notes)
            speaker = None if turn is None else self._grouping.speaker(author.key.agent)
            new = replace(new, caller_turn=turn, speaker=speaker)
            await self._grouping.delegations.begin(new)
        return wording.BEGINS.format(
            reviewer=found.title,
            branch=record.branch,
            author=self._grouping.name_of(author.key.agent),
        )

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Take the step that is due; True once the review is over."""
        first, last = rows[0], rows[-1]
        ended = self._grouping.find_end(last)
        if ended is None:
            return False
        author = self._grouping.sessions.session(first.caller_session)
        if author is None:
            return True
        review = self._reviews.of_turn(last.turn)
        if review is not None and review.verdict != "request_changes":
            words: str | None = ""  # the verdict was told
        else:
            words = await self._find_obstacle(rows, author, ended)
        if words is None:
            try:
                words = await self._step(group, rows, author, review)
            except Conflict as error:
                words = wording.CANNOT_GO_ON.format(why=error)
        if words is None:
            return False
        await self._grouping.end(first.root_session, group, words)
        return True

    async def _find_obstacle(
        self, rows: Sequence[Delegation], author: Session, ended: TurnState
    ) -> str | None:
        """Say why a review does not go on: a person stopped it or took over, or a turn failed."""
        agent = self._grouping.name_of(rows[-1].agent)
        if ended is TurnState.CANCELLED:
            return wording.STOPPED.format(agent=agent)
        if ended is TurnState.FAILED:
            return wording.FAILED.format(agent=agent)
        for turn in await self._grouping.turns.turns(author.id):
            if turn.id <= rows[0].turn:
                continue
            said = self._grouping.turns.messages(turn.id)
            person = next((each.speaker for each in said if each.speaker.kind == "person"), None)
            if person is not None:
                return wording.TAKEN_OVER.format(person=person.name)
        return None

    async def _step(
        self, group: str, rows: Sequence[Delegation], author: Session, review: Review | None
    ) -> str | None:
        """Go on with a review; returns the last words once it is over."""
        first, last = rows[0], rows[-1]
        if last.session == author.id:
            await self._look_again(group, rows, author)
            return None
        name = self._grouping.name_of(last.agent)
        if review is None:
            said = self._grouping.rows.answer(last).text
            return wording.NO_VERDICT.format(agent=name, said=said).strip()
        if last.round > self._runtime.configuration.settings.review_rounds:
            findings = wording.list_findings(review.findings)
            return wording.PEOPLE_DECIDE.format(
                reviewer=name, rounds=last.round, findings=findings
            ).strip()
        await self._answer(group, first, last, author, review)
        return None

    async def _answer(
        self, group: str, first: Delegation, last: Delegation, author: Session, review: Review
    ) -> None:
        """Give the findings to the author, as its next turn."""
        reviewer = self._grouping.speaker(last.agent)
        await self._grouping.delegations.begin(
            NewDelegation(
                "review",
                author.key.agent,
                last.session,
                None,
                wording.ANSWER_REVIEW.format(reviewer=reviewer.name, branch=review.branch),
                first.person,
                author.id,
                speaker=reviewer,
                context=wording.write_review(review),
                group=group,
                round=last.round,
            )
        )

    async def _look_again(self, group: str, rows: Sequence[Delegation], author: Session) -> None:
        """Let the reviewer look at what the author made of its findings."""
        first, last = rows[0], rows[-1]
        record = self._work_of(author)
        reviewer = self._grouping.name_of(first.agent)
        number = last.round + 1
        words = wording.LOOKS_AGAIN.format(reviewer=reviewer, number=number)
        await self._grouping.tell(first.root_session, f"round:{number}:{group}", words)
        said = self._grouping.rows.answer(last).text
        new = await self._ask_reviewer(group, author, record, first.agent, first.person, said)
        await self._grouping.delegations.begin(replace(new, session=first.session, round=number))

    async def _ask_reviewer(
        self,
        group: str,
        author: Session,
        record: Checkout,
        reviewer: str,
        person: Speaker,
        notes: str,
    ) -> NewDelegation:
        """Ask for a review, with the task and what the author says about its work as data."""
        name = self._grouping.name_of(author.key.agent)
        asked = await self._find_task(author)
        notes = notes or self._grouping.store.last_words(author.id)
        return NewDelegation(
            "review",
            reviewer,
            author.id,
            None,
            wording.REVIEW_TASK.format(author=name, branch=record.branch, base=record.base),
            person,
            context=self._grouping.redact(wording.write_notes(asked, name, notes)),
            repository=await self._grouping.target_of(author),
            workspace="read-only",
            group=group,
        )

    async def _find_task(self, author: Session) -> str:
        """Return what people asked the author for."""
        turns = await self._grouping.turns.turns(author.id)
        said = (each for turn in turns for each in self._grouping.turns.messages(turn.id))
        words = "\n\n".join(each.text for each in said if each.speaker.kind == "person")
        return words[-TASK_CHARACTERS:]

    def _work_of(self, author: Session) -> Checkout:
        record = self._checkouts.latest(author.id)
        if record is None or not record.branch or not record.sent:
            name = self._grouping.name_of(author.key.agent)
            raise Conflict(wording.NOT_PUSHED.format(agent=name))
        return record
