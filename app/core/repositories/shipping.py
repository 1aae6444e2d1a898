"""Ships the work in clones: to the remote, as a proposal, and to other agents of the place.

Every step is recorded before the next one begins and can be repeated: the next turn repeats what
a crash cut off, no commit is lost and nothing is proposed twice. No clone is read by another agent:
what goes from one to another goes through the remote.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict, dataclass, replace
from typing import Literal
from weakref import WeakValueDictionary

from app.core.base import Base
from app.core.repositories.clones import Ask, Clones
from app.core.repositories.forge import Forge
from app.errors import RepositoryError
from app.model.posts import Pushed
from app.model.proposals import Proposal, Work, branch_ref
from app.model.types import Session
from app.model.workspaces import (
    Checkout,
    Clone,
    Followed,
    Gathered,
    PullHead,
    Repository,
    Shipped,
    link_number,
)
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts
from app.repos.wording import commit_message, proposal_body, subject
from app.retry import persist

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Proposing:
    """What came of proposing a session's work during its turn."""

    branch: str
    commit: str
    """What was pushed last; empty if nothing was."""
    link: str
    """The pull request; empty without one."""
    shipped: Shipped
    """What this call did."""


class Shipper:
    """Ships the work of all sessions that have a clone."""

    def __init__(
        self,
        base: Base,
        clones: Clones,
        checkouts: GitCheckouts,
        forge: Forge | None,
    ) -> None:
        self._base = base
        self._clones = clones
        self._checkouts = checkouts
        self._records = base.stores.checkouts
        self._forge = forge
        self._shipped: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def propose(
        self, session: Session, target: Repository, work: Work, *, title: str, body: str
    ) -> Proposing:
        """Ship what there is now, under the agent's own words; empty ones stay as they were.

        Raises:
            RepositoryError: git cannot do it, or the agent's work is not shipped.
        """
        async with self._alone(session.id):
            record = self._clones.record(session, target)
            if record is None:
                raise RepositoryError(wording.NO_CLONE)
            if not record.branch:
                raise RepositoryError(wording.ONLY_READING)
            if self._clones.ship_of(session.key.agent) == "none":
                raise RepositoryError(wording.SHIPS_NOTHING)
            if title or body:
                words = (title or record.title, body or record.body)
                redacted = map(self._base.vault.redact, words)
                await persist(
                    self._base.clock, self._records.worded, record.session, record.number, *redacted
                )
            shipped = await self._ship(session, target, work)
            now = self._records.latest(session.id) or record
            if shipped.pushed is None and not shipped.note and now.sent and (title or body):
                if now.outcome:
                    raise RepositoryError(wording.PROPOSAL_OVER.format(outcome=now.outcome))
                # Nothing was left to push: only the words change.
                clone = await self._clones.clone(session, now)
                shipped = await self._propose(session, now, clone, _in_own_words(work, now))
            now = self._records.latest(session.id) or now
            return Proposing(now.branch, now.sent, now.link, shipped)

    async def ship(self, session: Session, target: Repository, work: Work) -> Shipped:
        """Ship the result of a turn as the agent's entry says.

        Raises:
            RepositoryError: git cannot do it.
        """
        async with self._alone(session.id):
            return await self._ship(session, target, work)

    def _alone(self, session_id: int) -> asyncio.Lock:
        """Return the lock that keeps a turn's end and a tool from shipping at the same time."""
        return self._shipped.setdefault(session_id, asyncio.Lock())

    async def _ship(self, session: Session, target: Repository, work: Work) -> Shipped:
        record = self._clones.record(session, target)
        if record is None or not record.branch:
            return Shipped()
        if self._clones.ship_of(session.key.agent) == "none":
            return Shipped()
        work = _in_own_words(work, record)
        clone = await self._clones.clone(session, record)
        gathered = await self._gather(session, clone, work)
        if gathered.problem:
            return Shipped(note=wording.NOT_SHIPPED.format(problem=gathered.problem))
        commit = gathered.commit
        unchanged = commit == record.commit and not record.sent
        if unchanged or (commit == record.told and not work.continued):
            return Shipped()
        if commit != record.sent:
            if refusal := await self._checkouts.push(clone, commit):
                return Shipped(note=wording.NOT_PUSHED.format(problem=refusal))
            await self._clones.record_sent(record, commit)
        return await self._propose(session, replace(record, sent=commit), clone, work)

    async def hold(self, session: Session, target: Repository, work: Work) -> None:
        """Commit the result of a turn, and push nothing.

        Raises:
            RepositoryError: git cannot do it.
        """
        record = self._clones.record(session, target)
        if record is not None:
            await self._gather(session, await self._clones.clone(session, record), work)
            await self._clones.measure(session)

    async def _gather(self, session: Session, clone: Clone, work: Work) -> Gathered:
        """Commit what an agent left uncommitted."""
        name = self._base.agents[session.key.agent].author.name
        message = self._base.vault.redact(commit_message(work, session.key, name))
        return await self._checkouts.gather(clone, message)

    async def _propose(
        self, session: Session, record: Checkout, clone: Clone, work: Work
    ) -> Shipped:
        """Return what was pushed and, if configured, propose it."""
        changes = await self._checkouts.count_changes(clone, record.told or record.commit)
        counted = {} if changes is None else asdict(changes)
        pushed = Pushed(record.repository.name, record.branch, **counted)
        link = record.link
        forge = self._forge
        if forge and self._clones.ship_of(session.key.agent) == "pr" and record.way == "branch":
            name = self._base.agents[session.key.agent].author.name
            proposal = Proposal(
                record.repository,
                session.key.agent,
                session.id,
                head=record.branch,
                base=record.base,
                title=self._base.vault.redact(subject(work, name)),
                body=self._base.vault.redact(proposal_body(work, session.key, name)),
            )
            try:
                link = await forge.propose(proposal)
            except RepositoryError as error:
                return Shipped(pushed, wording.NOT_PROPOSED.format(problem=error))
        if forge and link:
            pushed = replace(
                pushed,
                link=link,
                number=link_number(link),
                checks=await self._read_checks(forge, session, record),
            )
        files = await self._checkouts.conflicts(clone, record.base, record.sent)
        await persist(
            self._base.clock, self._records.told, record.session, record.number, record.sent, link
        )
        named = wording.some(files)
        conflict = wording.CONFLICT.format(base=record.base, files=named) if files else ""
        return Shipped(pushed, conflict)

    async def _read_checks(
        self, forge: Forge, session: Session, record: Checkout
    ) -> Literal["", "running", "passed", "failed"]:
        """Tell how the checks of a pull request are now; empty if that cannot be read."""
        try:
            found = await forge.judged(record.repository, session.key.agent, record.branch)
        except RepositoryError as error:
            logger.info("cannot read the checks of %s: %s", record.branch, error)
            return ""
        return "" if found is None else found.checks


def _in_own_words(work: Work, record: Checkout) -> Work:
    """Describe a turn's work in its agent's own words, where it gave some."""
    return replace(work, title=record.title or work.title, body=record.body)


class SharedClones:
    """The clones of sessions that work on, or look at, one branch."""

    def __init__(self, base: Base, clones: Clones, checkouts: GitCheckouts) -> None:
        self._base = base
        self._clones = clones
        self._checkouts = checkouts
        self._records = base.stores.checkouts

    async def hand_on(self, session: Session, record: Checkout, ask: Ask) -> str:
        """Push what a session left in its clone, for an agent that goes on with it.

        Returns what stays behind and why, if anything does.
        """
        if record.state != "ready":
            return ""
        try:
            held = await self._clones.unshipped(session, record)
            if not held:
                return ""
            if self._clones.ship_of(session.key.agent) == "none":
                return held
            clone = await self._clones.clone(session, record)
            return await self._push_rest(session, record, clone, ask)
        except RepositoryError as error:
            return str(error).rstrip(".")

    async def begin_on(self, session: Session, target: Repository, theirs: Checkout) -> None:
        """Decide that a session goes on with the branch of another one."""
        last = self._records.latest(session.id)
        number = 1 if last is None else last.number + 1
        record = Checkout(session.id, number, target, "branch", theirs.branch, theirs.start)
        await persist(self._base.clock, self._records.begin, record)

    async def begin_at(
        self, session: Session, target: Repository, branch: str, *, apart: bool
    ) -> bool:
        """Decide that a session works on a branch, or `apart` on a new one that starts from it.

        False if it has a clone of the repository already.
        """
        last = self._records.latest(session.id)
        if last is not None and last.repository == target and last.state != "gone":
            return False
        await self._clones.begin(session, target, PullHead(branch, branch_ref(branch)), apart=apart)
        return True

    async def read(self, session: Session, target: Repository, commit: str) -> bool:
        """Check a commit out for reading, with nothing to push to.

        False if the session has a branch of its own, which stays as it is.

        Raises:
            RepositoryError: git cannot do it there.
        """
        last = self._records.latest(session.id)
        if last is None or last.repository != target or last.state == "gone":
            number = 1 if last is None else last.number + 1
            record = Checkout(session.id, number, target, "detached", start=commit)
            await persist(self._base.clock, self._records.begin, record)
            return True
        if last.branch:
            return False
        if last.state == "ready" and last.commit != commit:
            await self._checkouts.check_out(await self._clones.clone(session, last), commit)
        await persist(self._base.clock, self._records.moved, session.id, last.number, commit)
        return True

    async def follow(self, session: Session, record: Checkout, theirs: Checkout) -> Followed:
        """Bring what another session pushed to the same branch into a clone.

        Raises:
            RepositoryError: git cannot do it there.
        """
        clone = await self._clones.clone(session, record)
        followed = await self._checkouts.follow(clone, theirs.sent)
        if followed.state == "updated":
            link = record.link or theirs.link
            where = (record.session, record.number, followed.commit)
            await persist(self._base.clock, self._records.followed, *where, link)
        return followed

    async def _push_rest(self, session: Session, record: Checkout, clone: Clone, ask: Ask) -> str:
        """Commit and push what is left in a clone; returns why that is not possible, if so."""
        was_open = bool(self._checkouts.visible(clone.folder))
        if not was_open and not await self._clones.reopen(session, record, clone, ask):
            return wording.CLONE_BROKEN
        try:
            name = self._base.agents[session.key.agent].author.name
            work = Work(session.title, ())
            message = self._clones.redact(commit_message(work, session.key, name))
            gathered = await self._checkouts.gather(clone, message)
            return gathered.problem or await self._checkouts.push(clone, gathered.commit)
        finally:
            if not was_open:
                await self._checkouts.close(clone.folder)
