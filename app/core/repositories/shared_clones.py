"""Prepares clones for work that several agents have a part in: on one branch, or to read it.

No clone is read by another agent: what goes from one to another goes through the remote.
"""

from __future__ import annotations

from app.clock import Clock
from app.core.repositories.clones import Ask, Clones, Shipping
from app.core.repositories.ports import Checkouts
from app.errors import RepositoryError
from app.model import repository_wording as wording
from app.model.branch_names import branch_ref
from app.model.commit_messages import commit_message
from app.model.types import Session
from app.model.workspaces import Checkout, Clone, Followed, Head, Repository, Work
from app.retry import persist
from app.store.checkouts import CheckoutStore


class SharedClones:
    """The clones of sessions that work on, or look at, one branch."""

    def __init__(
        self,
        clones: Clones,
        checkouts: Checkouts,
        records: CheckoutStore,
        shipping: Shipping,
        clock: Clock,
    ) -> None:
        self._clones = clones
        self._checkouts = checkouts
        self._records = records
        self._shipping = shipping
        self._clock = clock

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
            if self._shipping.of(session.key.agent) == "none":
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
        await persist(self._clock, self._records.begin, record)

    async def begin_at(
        self, session: Session, target: Repository, branch: str, *, apart: bool
    ) -> bool:
        """Decide that a session works on a branch, or `apart` on a new one that starts from it.

        False if it has a clone of the repository already.
        """
        last = self._records.latest(session.id)
        if last is not None and last.repository == target and last.state != "gone":
            return False
        await self._clones.begin(session, target, Head(branch, branch_ref(branch)), apart=apart)
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
            await persist(self._clock, self._records.begin, record)
            return True
        if last.branch:
            return False
        if last.state == "ready" and last.commit != commit:
            await self._checkouts.check_out(await self._clones.clone(session, last), commit)
        await persist(self._clock, self._records.moved, session.id, last.number, commit)
        return True

    async def follow(self, session: Session, record: Checkout, theirs: Checkout) -> Followed:
        """Bring what another session pushed to the same branch into a clone.

        Raises:
            RepositoryError: git cannot do it there.
        """
        clone = await self._clones.clone(session, record)
        followed = await self._checkouts.follow(clone, theirs.sent)
        if followed.state == "updated":
            await self._clones.record_sent(record, followed.commit)
            link = record.link or theirs.link
            await persist(
                self._clock,
                self._records.told,
                *(record.session, record.number, followed.commit, link),
            )
        return followed

    async def _push_rest(self, session: Session, record: Checkout, clone: Clone, ask: Ask) -> str:
        """Commit and push what is left in a clone; returns why that is not possible, if so."""
        was_open = bool(self._checkouts.visible(clone.folder))
        if not was_open and not await self._clones.reopen(session, record, clone, ask):
            return wording.CLONE_BROKEN
        try:
            name = self._shipping.agents[session.key.agent].author.name
            work = Work(session.title, ())
            message = self._clones.redact(commit_message(work, session.key, name))
            gathered = await self._checkouts.gather(clone, message)
            return gathered.problem or await self._checkouts.push(clone, gathered.commit)
        finally:
            if not was_open:
                await self._checkouts.close(clone.folder)
