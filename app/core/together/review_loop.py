"""Runs reviews in rounds: a reviewer looks and the author answers, until people have to decide.

The state of a review is in its rows: the delegations of its group, in turn to the reviewer and to
the author, and the verdicts. Any step can follow a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.core.together import wording
from app.core.together.group import Grouping
from app.errors import Conflict
from app.model.delegation import Delegation, NewDelegation
from app.model.reviews import Review
from app.model.types import Session, SessionState, Speaker, TurnState
from app.model.workspaces import Checkout
from app.store.checkouts import CheckoutStore
from app.store.reviews import ReviewStore

AT_WORK = {SessionState.WORKING, SessionState.WAITING, SessionState.QUEUED}
TASK_CHARACTERS = 8_000
"""What a reviewer is told of the task: the last three pages."""


class ReviewLoop:
    """The reviews in rounds."""

    def __init__(
        self,
        grouping: Grouping,
        reviews: ReviewStore,
        checkouts: CheckoutStore,
        *,
        rounds: Callable[[], int],
    ) -> None:
        """Run reviews; `rounds` tells how often an author answers before people decide."""
        self._grouping = grouping
        self._reviews = reviews
        self._checkouts = checkouts
        self._rounds = rounds

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
        if last.round > self._rounds():
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
        notes = notes or self._grouping.groups.last_words(author.id)
        return NewDelegation(
            "review",
            reviewer,
            author.id,
            None,
            wording.REVIEW_TASK.format(author=name, branch=record.branch, base=record.base),
            person,
            context=self._grouping.redact(
                wording.write_notes(
                    asked, name, notes or self._grouping.groups.last_words(author.id)
                )
            ),
            repository=self._grouping.target_of(author),
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
