"""Manages clones: opens them for a session, and removes unused ones.

Every step is recorded before the next one begins and can be repeated: the next turn repeats what
a crash cut off.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from app.core.base import Base
from app.core.repositories.forge import Forge
from app.errors import RepositoryError
from app.model.proposals import branch_name, branch_ref, is_branch
from app.model.types import Entry, Session
from app.model.workspaces import (
    Author,
    Checkout,
    Clone,
    Diff,
    PullHead,
    Repository,
    Ship,
    WorkspaceView,
    folder_name,
    web_address,
)
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts
from app.retry import persist

logger = logging.getLogger(__name__)

Ask = Callable[[str, Sequence[str]], Awaitable[bool]]
"""Has a person decide, where one can be asked."""


class Clones:
    """The clones of all sessions."""

    def __init__(
        self,
        base: Base,
        root: Path,
        checkouts: GitCheckouts,
        *,
        forge: Forge | None = None,
        machine: str = "",
    ) -> None:
        """Keep the clones below a folder, on the disk of a machine."""
        self._root = root
        self._checkouts = checkouts
        self._base = base
        self._records = base.stores.checkouts
        self._forge = forge
        self._machine = machine
        self._kept: set[tuple[int, int]] = set()

    def ship_of(self, agent: str) -> Ship:
        """Tell how an agent's work is shipped."""
        found = self._base.agents.get(agent)
        return found.ship if found else "none"

    async def _author_of(self, agent: str) -> Author:
        """Tell the author of an agent's commits.

        Raises:
            RepositoryError: there is no longer such an agent.
        """
        if agent not in self._base.agents:
            raise RepositoryError(f"{agent} is no longer set up.")
        known = None if self._forge is None else await self._forge.author(agent)
        return known or self._base.agents[agent].author

    async def all(self) -> Sequence[Checkout]:
        """List the clones that still exist."""
        return await self._records.all()

    def is_ours(self, record: Checkout) -> bool:
        """Tell whether a clone is, or was, on this machine's disk."""
        return record.machine in {"", self._machine}

    async def open(self, session: Session, target: Repository, ask: Ask) -> Path:
        """Prepare a session's clone, an earlier one if it can be used.

        Raises:
            RepositoryError: the repository cannot be used.
        """
        record = self._records.latest(session.id)
        if record is None or record.repository != target or record.state == "gone":
            record = await self._begin(session, target)
        clone = await self.clone(session, record)
        if record.state == "ready" and not await self.reopen(session, record, clone, ask):
            record = await self._begin(session, target)
            clone = await self.clone(session, record)
        if record.state == "opening":
            await self._make(session, record, clone, ask)
        return clone.folder

    def view(self, session: Session, target: Repository) -> WorkspaceView:
        """Tell what people see of a session's clone."""
        record = self._records.latest(session.id)
        if record is None or record.repository != target:
            return WorkspaceView("clone", target.name, web=web_address(target))
        return WorkspaceView(
            "clone",
            target.name,
            record.branch,
            record.base,
            record.link,
            record.sent,
            web_address(target),
            record.outcome,
            record.judged,
            record.changes,
        )

    def record(self, session: Session, target: Repository) -> Checkout | None:
        """Return the stored state of a session's clone, if it is ready."""
        record = self._records.latest(session.id)
        is_ready = record is not None and record.state == "ready" and record.repository == target
        return record if is_ready else None

    def folder(self, session: Session, target: Repository) -> Path | None:
        """Return the folder of a session's clone, if there is one."""
        record = self.record(session, target)
        return None if record is None else self.locate(session, record)

    def is_to_open(self, session: Session) -> bool:
        """Tell whether it was decided that a session works in a clone that is not made yet."""
        record = self._records.latest(session.id)
        return record is not None and record.state == "opening"

    def redact(self, text: str) -> str:
        """Remove known secrets from a text."""
        return self._base.vault.redact(text)

    async def changes(self, session: Session) -> Sequence[Diff]:
        """Show what a session changed in its clone since it began."""
        record = self._records.latest(session.id)
        if record is None or record.state != "ready":
            return ()
        clone = await self.clone(session, record)
        if not clone.folder.is_dir():
            raise RepositoryError("the folder was cleaned up; the next message opens it again")
        return await self._checkouts.changes(clone, start=record.commit, sent=record.sent)

    async def measure(self, session: Session) -> None:
        """Record how much a session changed in its clone since it began."""
        record = self._records.latest(session.id)
        if record is None or record.state != "ready":
            return
        changes = await self._checkouts.count_changes(
            await self.clone(session, record), record.commit
        )
        if changes is not None and changes != record.changes:
            await persist(
                self._base.clock, self._records.measured, record.session, record.number, changes
            )

    async def unshipped(self, session: Session, record: Checkout) -> str:
        """Say what a clone holds that is nowhere else; empty if it can be removed."""
        clone = await self.clone(session, record)
        return await self._checkouts.unshipped(clone, sent=record.sent, start=record.commit)

    async def keep(self, session: Session, record: Checkout, held: str) -> str:
        """Tell the session's place that a clone is kept, and why; empty if that was said before."""
        name = (record.session, record.number)
        if name in self._kept:
            return ""
        self._kept.add(name)
        told = wording.CLONE_KEPT.format(session=session.key, held=held)
        await self.note(session, told)
        return told

    async def remove(self, session: Session, record: Checkout) -> None:
        """Remove a clone."""
        await self._checkouts.remove(self.locate(session, record))
        await persist(self._base.clock, self._records.gone, record.session, record.number)

    async def _begin(self, session: Session, target: Repository) -> Checkout:
        forge = self._forge
        head = None if forge is None else await forge.head(session)
        return await self.begin(session, target, head)

    async def begin(
        self, session: Session, target: Repository, head: PullHead | None, *, apart: bool = False
    ) -> Checkout:
        """Decide how a clone is opened, and record that before anything is made.

        On the branch of a head, if agents may push there; else, or with `apart`, on a new branch
        that starts from it.
        """
        last, how = self._records.latest(session.id), self.ship_of(session.key.agent)
        number = 1 if last is None else last.number + 1
        if last is not None and last.repository == target and await self._is_pushed(session, last):
            record = Checkout(
                session.id,
                number,
                target,
                "existing",
                last.branch,
                last.start,
                told=last.told,
                title=last.title,
                body=last.body,
            )
        elif head is not None and (not is_branch(head.branch) or how == "none"):
            record = Checkout(session.id, number, target, "detached", start=head.commit)
        elif (
            head is not None
            and not apart
            and not await self._is_guarded(session, target, head.branch)
        ):
            record = Checkout(session.id, number, target, "existing", head.branch)
        else:
            branch = branch_name(session.key, session.place, session.title)
            # Names of places may differ only in characters that a branch cannot have.
            owner = self._records.of_branch(target.url, branch)
            branch = branch if owner is None else f"{branch}-{session.id}-{number}"
            start = "" if head is None else branch_ref(head.branch)
            record = Checkout(session.id, number, target, "branch", branch, start)
        await persist(self._base.clock, self._records.begin, record)
        return record

    async def _is_pushed(self, session: Session, last: Checkout) -> bool:
        """Tell whether the remote still has the branch of an earlier clone."""
        if not last.sent:
            return False
        found = await self._checkouts.find_branch(last.repository, session.key.agent, last.branch)
        return found is not None

    async def _is_guarded(self, session: Session, target: Repository, branch: str) -> bool:
        """Tell whether agents only propose changes to a branch; if so, tell the place."""
        forge = self._forge
        reason = forge and await forge.guard(target, session.key.agent, branch)
        if not reason:
            return False
        told = wording.BRANCH_GUARDED.format(branch=branch, repository=target.name, reason=reason)
        await self.note(session, told)
        return True

    async def _make(self, session: Session, record: Checkout, clone: Clone, ask: Ask) -> None:
        async with self._closed_if_it_fails(clone):
            opened = await self._checkouts.open(
                clone,
                fresh=True,
                on_sent=lambda commit: self.record_sent(record, commit),
                ask=ask,
            )
            if opened is None:
                raise RepositoryError(f"There is no clone of {record.repository.name}.")
            await self._prepare(session, clone)
            if opened.has_branch and record.commit:
                # This session pushed it, and did not come to propose it.
                opened = replace(opened, commit=record.commit)
            await persist(
                self._base.clock,
                self._records.ready,
                *(record.session, record.number, opened, self._machine),
            )

    async def _prepare(self, session: Session, clone: Clone) -> None:
        said = await self._checkouts.prepare(clone)
        if said is not None:
            await self.note(session, said)

    async def reopen(self, session: Session, record: Checkout, clone: Clone, ask: Ask) -> bool:
        """Open an existing clone; False if it is gone or broken, which the place is told then.

        Raises:
            RepositoryError: it cannot be opened now.
        """
        if not (self.is_ours(record) and clone.folder.is_dir()):
            await self.note(session, wording.CLONE_LOST)
            return False
        await self._checkouts.find_mirror(clone)
        try:
            async with self._closed_if_it_fails(clone):
                await self._checkouts.open(
                    clone,
                    fresh=False,
                    start=record.commit,
                    on_sent=lambda commit: self.record_sent(record, commit),
                    ask=ask,
                )
        except RepositoryError as error:
            await self.note(session, wording.CLONE_UNUSABLE.format(problem=error))
            return False
        return True

    @asynccontextmanager
    async def _closed_if_it_fails(self, clone: Clone) -> AsyncIterator[None]:
        """Close the gate if opening fails: no agent uses it and nothing else would close it."""
        try:
            yield
        except BaseException:
            await self._checkouts.close(clone.folder)
            raise

    async def clone(self, session: Session, record: Checkout) -> Clone:
        """Describe a session's clone for git.

        Raises:
            RepositoryError: there is no longer such an agent.
        """
        agent = session.key.agent
        return Clone(
            folder=self.locate(session, record),
            home=folder_name(session),
            session=session.key,
            repository=record.repository,
            way=record.way,
            author=await self._author_of(agent),
            branch=record.branch,
            start=record.start,
        )

    def locate(self, session: Session, record: Checkout) -> Path:
        """Return the folder of a clone."""
        return self._root / f"{folder_name(session)}-{record.number}"

    async def record_sent(self, record: Checkout, commit: str) -> None:
        """Record that a commit was pushed to the remote."""
        await persist(self._base.clock, self._records.pushed, record.session, record.number, commit)

    async def note(self, session: Session, words: str) -> None:
        """Tell people something about a session's work."""
        entry = Entry("notice", self._base.vault.redact(words), session=session.id)
        await persist(self._base.clock, self._base.stores.transcript.append, [entry])
