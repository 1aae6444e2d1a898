"""Lets agents of a place work on one branch: one goes on with it, or reviews it.

Each agent has its own clone. What one leaves to another goes through its own gate to the remote,
inspected as any push; no agent reads another's clone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.core.base import Base
from app.core.repositories.clones import Ask
from app.core.repositories.forge import Forge
from app.core.repositories.shipping import SharedClones
from app.errors import RepositoryError
from app.model.delegation import DelegatedWork
from app.model.proposals import Subject, branch_ref
from app.model.types import Session, SessionState
from app.model.wording import PULL_REQUEST
from app.model.workspaces import Checkout, Repository, link_number
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts

BEGINNING = 1000
"""Characters of a message that are read: more than a line that asks for a review has."""

_ASKS = re.compile(
    r"""\s*
    (?:@\S+(?:\ \S+){0,2}?[,:]?\s+){0,3}  # mentions; a name for people may have several words
    (?:(?:please|pls|can\ you|could\ you|would\ you|hey|hi|now|then)[,:]?\s+){0,3}
    (?:re-?)?review\b
    (?P<rest>[^\n]*)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OBJECT = re.compile(
    r"""\s*(?:
        $|[.!?:;,(]|
        (?:this|that|it|these|those|again|please|now)\b|
        (?:the\ |this\ |that\ )?(?:pr|pull(?:\ |-)?request)\b|\#\d|\S*/pull/\d|
        (?:the|my|our|his|her|their|its|all|latest|these|\S+'s)\ (?:\w+\ ){0,2}?
        (?:changes?|diff|branch|patch|work|code|commits?|fix|implementation|pr)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_CHANGES = re.compile(
    r"(?:\band|\bthen|[,;&])\s+(?:\w+\s+){0,2}?"
    r"(?:fix|change|edit|improve|update|rewrite|implement|push|merge|apply|address|add|write|"
    r"refactor|resolve|finish|correct)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:#|/pull/|\bpr\s+|\bpull.?request\s+)(\d{1,9})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A wish to have something reviewed."""

    number: int | None = None
    """The number of a pull request, if the words name one."""


def find_review(texts: Iterable[str]) -> ReviewRequest | None:
    """Find the first of some messages that asks for a review; None if none does."""
    for text in texts:
        asks = _ASKS.match(text[:BEGINNING])
        if asks is None or _CHANGES.search(asks["rest"]) or not _OBJECT.match(asks["rest"]):
            continue
        number = _NUMBER.search(asks["rest"])
        return ReviewRequest(None if number is None else int(number[1]))
    return None


DIFF_CHARACTERS = 60_000
"""Part of a diff in a prompt: some 1,500 lines; the agent reads the rest in its clone."""
AT_WORK = {SessionState.WORKING, SessionState.WAITING}
"""States in which an agent may be changing its clone."""


@dataclass(frozen=True, slots=True)
class SharedWork:
    """What an agent is told about the work of others before its turn."""

    notes: tuple[str, ...] = ()
    """Lines by the bridge."""
    data: tuple[tuple[str, str], ...] = ()
    """What the prompt holds as data, each with its origin."""
    told: str = ""
    """What people in the place should know, if anything."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What is to be reviewed."""

    name: str
    """What people call it: a branch, a pull request."""
    ref: str
    """A full ref name, or a commit."""
    base: str
    """The branch that it is proposed for; empty for the default branch."""
    by: str = ""
    """What people call its author, if that is an agent of this place."""
    readonly: bool = True
    """Whether the reviewer has nothing to push to."""


class JointWork:
    """The branches that agents of one place share."""

    def __init__(
        self,
        base: Base,
        clones: SharedClones,
        checkouts: GitCheckouts,
        *,
        forge: Forge | None,
        name_of: Callable[[str], str],
    ) -> None:
        """Join agents' work; `name_of` returns what people call an agent, present or removed."""
        self._base = base
        self._clones = clones
        self._checkouts = checkouts
        self._records = base.stores.checkouts
        self._sessions = base.stores.sessions
        self._forge = forge
        self._name_of = name_of

    async def join(
        self, session: Session, target: Repository, texts: Sequence[str], ask: Ask
    ) -> SharedWork:
        """Prepare a session's clone for a turn about these texts, as far as others have a part.

        Raises:
            RepositoryError: the repository cannot be used.
        """
        if (author := self._base.stores.tree.author_of(session.id)) is not None:
            return await self._review_work_of(author, session, target)
        if (delegated := self._base.stores.tree.begun_for(session.id)) is not None:
            return await self._share(session, target, delegated)
        if (theirs := self._find_inherited(session, target)) is not None:
            return await self._take_over(session, target, theirs, ask)
        wanted = find_review(texts)
        if wanted is not None:
            try:
                found = await self._find_reviewed(session, target, wanted)
            except RepositoryError as error:
                return SharedWork((f"{error}",), told=str(error))
            if found is not None:
                return await self._review(session, target, found)
        return await self._catch_up(session, target)

    def _colleagues(self, session: Session, target: Repository) -> list[Checkout]:
        """List the branches of other agents here in one repository, the last used first."""
        return [
            each
            for each in self._records.in_place(session.place)
            if each.session != session.id and each.repository == target and each.branch
        ]

    def _own_branch(self, session: Session, target: Repository) -> str:
        mine = self._records.latest(session.id)
        return mine.branch if mine is not None and mine.repository == target else ""

    def _agent_of(self, record: Checkout) -> str:
        owner = self._sessions.session(record.session)
        return "" if owner is None else owner.key.agent

    # Hand-over.

    def _find_inherited(self, session: Session, target: Repository) -> Checkout | None:
        """Find the branch that a session was given with its place and does not have yet."""
        place = self._base.stores.decisions.place(session.place)
        if place.holder != session.key.agent:
            return None
        own = self._own_branch(session, target)
        here = {each.id for each in self._sessions.in_place(session.place)}
        for theirs in self._colleagues(session, target):
            if theirs.session not in here:
                continue  # it belongs to an agent that works for one here
            if self._agent_of(theirs) == place.predecessor and theirs.outcome != "merged":
                return None if theirs.branch == own else theirs
        return None

    async def _take_over(
        self, session: Session, target: Repository, theirs: Checkout, ask: Ask
    ) -> SharedWork:
        owner = self._sessions.session(theirs.session)
        assert owner is not None, "a clone has its session"
        if owner.state in AT_WORK:
            left = wording.STILL_AT_WORK
        else:
            left = await self._clones.hand_on(owner, theirs, ask)
        await self._clones.begin_on(session, target, theirs)
        name = self._name_of(owner.key.agent)
        note = wording.GOES_ON_WITH.format(agent=name, branch=theirs.branch)
        told = wording.LEFT_BEHIND.format(agent=name, left=left) if left else ""
        return SharedWork(tuple(filter(None, (note, told))), told=told)

    async def _catch_up(self, session: Session, target: Repository) -> SharedWork:
        """Bring what others pushed to the branch of a session into its clone."""
        mine = self._records.latest(session.id)
        if mine is None or mine.state != "ready" or mine.repository != target or not mine.branch:
            return SharedWork()
        for theirs in self._colleagues(session, target):
            if theirs.branch != mine.branch or theirs.sent in {"", mine.sent}:
                continue
            try:
                followed = await self._clones.follow(session, mine, theirs)
            except RepositoryError as error:  # an old state is better than no answer
                return SharedWork((str(error),), told=str(error))
            if followed.state == "current":
                continue
            name = self._name_of(self._agent_of(theirs))
            words = wording.CAUGHT_UP if followed.state == "updated" else wording.FELL_BEHIND
            note = words.format(agent=name, branch=mine.branch, commit=followed.commit[:12])
            origin = wording.NEW_COMMITS.format(branch=mine.branch)
            return SharedWork((note,), ((origin, followed.log),) if followed.log else ())
        return SharedWork()

    # What one agent gives another to do.

    async def _share(
        self, session: Session, target: Repository, delegated: DelegatedWork
    ) -> SharedWork:
        """Let a session work on the branch of the one that asked, or read it, as was said."""
        if delegated.branch:
            return await self._take_branch(session, target, delegated)
        theirs = self._records.latest(delegated.caller)
        if theirs is None or theirs.repository != target or delegated.workspace == "new-branch":
            return await self._catch_up(session, target)
        name, branch = self._name_of(self._agent_of(theirs)), theirs.branch or target.name
        if delegated.workspace == "same-branch" and theirs.branch:
            if theirs.branch == self._own_branch(session, target):
                return await self._catch_up(session, target)
            await self._clones.begin_on(session, target, theirs)
            return SharedWork((wording.SHARES.format(agent=name, branch=branch),))
        commit = theirs.sent or theirs.commit
        await self._clones.read(session, target, commit)
        return SharedWork((wording.READS.format(agent=name, branch=branch, commit=commit[:12]),))

    async def _take_branch(
        self, session: Session, target: Repository, delegated: DelegatedWork
    ) -> SharedWork:
        """Let a session work on a branch that was named, start from it, or read it."""
        branch = delegated.branch
        if delegated.workspace == "read-only":
            commit = await self._checkouts.find_branch(target, session.key.agent, branch)
            if commit is None:
                raise RepositoryError(wording.NO_BRANCH.format(branch=branch, name=target.name))
            await self._clones.read(session, target, commit)
            return SharedWork((wording.READS_BRANCH.format(branch=branch, commit=commit[:12]),))
        apart = delegated.workspace == "new-branch"
        if not await self._clones.begin_at(session, target, branch, apart=apart):
            return await self._catch_up(session, target)
        is_there = self._own_branch(session, target) == branch
        note = wording.WORKS_ON if is_there else wording.STARTS_FROM
        return SharedWork((note.format(branch=branch),))

    # Review.

    async def find_subject(self, session: Session, target: Repository) -> Subject | None:
        """Tell what a session reviews: the commit in its clone for reading, else as people ask."""
        mine = self._records.latest(session.id)
        is_reading = mine is not None and mine.repository == target and mine.way == "detached"
        commit = mine.start if mine is not None and is_reading else ""
        for theirs in await self._records.all() if commit else ():
            if theirs.repository == target and theirs.branch and theirs.sent == commit:
                return Subject(target, theirs.branch, theirs.base, commit, theirs.session)
        found = await self._find_reviewed(session, target, ReviewRequest())
        if found is None:
            return None
        author = self._records.of_branch(target.url, found.name)
        return Subject(target, found.name, found.base, commit or found.ref, author)

    async def _find_reviewed(
        self, session: Session, target: Repository, wanted: ReviewRequest
    ) -> Reviewed | None:
        """Find what is to be reviewed: the pull request named or of this place, else a branch."""
        agent, forge = session.key.agent, self._forge
        own = self._own_branch(session, target)
        if wanted.number is not None:
            known = [
                each
                for each in await self._records.all()
                if each.repository == target and link_number(each.link) == wanted.number
            ]
        else:
            known = self._colleagues(session, target)
        if forge is not None:
            head = (
                await forge.head(session)
                if wanted.number is None
                else await forge.pull(target, agent, wanted.number)
            )
            if head is not None:
                by = next((each for each in known if each.branch == head.name), None)
                author = "" if by is None else self._name_of(self._agent_of(by))
                name = head.name or PULL_REQUEST
                return Reviewed(name, head.commit, head.base, author, readonly=not head.branch)
        for each in known:
            if each.branch != own and each.sent:
                name = self._name_of(self._agent_of(each))
                return Reviewed(each.branch, branch_ref(each.branch), each.base, name)
        return None

    async def _review_work_of(
        self, author: int, session: Session, target: Repository
    ) -> SharedWork:
        """Open what another session pushed for reading."""
        theirs = self._records.latest(author)
        if theirs is None or theirs.repository != target or not theirs.sent:
            return SharedWork((wording.NOTHING_TO_REVIEW.format(name=target.name),))
        name = self._name_of(self._agent_of(theirs))
        found = Reviewed(theirs.branch, theirs.sent, theirs.base, name)
        return await self._review(session, target, found)

    async def _review(self, session: Session, target: Repository, found: Reviewed) -> SharedWork:
        """Open what is reviewed for reading, and have it in the prompt as a diff."""
        compared = await self._checkouts.compare(target, session.key.agent, found.ref, found.base)
        if compared is None:
            return SharedWork(told=wording.NOTHING_TO_REVIEW.format(name=found.name))
        where = wording.REVIEW_IN_PLACE
        if found.readonly and not await self._clones.read(session, target, compared.commit):
            where = wording.REVIEW_APART
        by = wording.REVIEW_BY.format(agent=found.by) if found.by else ""
        note = wording.REVIEW.format(
            name=found.name, by=by, commit=compared.commit[:12], base=compared.base, where=where
        )
        diff = self._base.vault.redact(compared.diff)
        if len(diff) > DIFF_CHARACTERS:
            diff = f"{diff[:DIFF_CHARACTERS]}\n{wording.CUT_DIFF}"
        origin = wording.DIFF.format(name=found.name, base=compared.base)
        return SharedWork((note,), ((origin, diff),))
