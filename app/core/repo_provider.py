"""Says how a workspace is opened, kept and shipped: an empty folder, a folder in place, a clone.

Every step is written down before the next one begins, and every step may be done twice: what a
crash cut off is done again at the next turn, no commit is lost and nothing is proposed twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from app.core.clock import persist
from app.core.folders import Folders, beside, outgoing
from app.core.ports import AgentListener, Checkouts, Clock, PullRequests, TokenSource
from app.core.repositories.directory import Directory, Target
from app.core.stores.inbox import IntakeStore
from app.core.stores.repositories import CheckoutStore, NameStore
from app.core.stores.sessions import SessionStore, TranscriptStore
from app.core.types import Entry, File, Session, SessionState
from app.core.updates import AskOption, AskRequest
from app.core.workspaces import (
    Author,
    Checkout,
    Clone,
    Proposal,
    Repository,
    Ship,
    Work,
    WorkspaceView,
    branch_name,
    commit_message,
    is_branch,
    proposal_body,
    subject,
)
from app.errors import Conflict, RepositoryError
from app.vault import Vault

logger = logging.getLogger(__name__)

ALLOW, REFUSE = "allow", "reject"
NAMED_FILES = 5
"""How many files a note names: enough to know what it is about."""


class RepoProvider:
    """Workspaces of every kind; implements the port `Workspaces`."""

    def __init__(
        self,
        folders: Folders,
        checkouts: Checkouts,
        records: CheckoutStore,
        places: IntakeStore,
        sessions: SessionStore,
        transcript: TranscriptStore,
        *,
        directory: Directory,
        clock: Clock,
        vault: Vault,
        ship: Mapping[str, Ship],
        authors: Mapping[str, Author],
        tokens: TokenSource | None = None,
        pulls: PullRequests | None = None,
        names: NameStore | None = None,
        variables: Mapping[Target, Mapping[str, str]] | None = None,
    ) -> None:
        self._folders = folders
        self._checkouts = checkouts
        self._records = records
        self._places = places
        self._sessions = sessions
        self._transcript = transcript
        self._directory = directory
        self._clock = clock
        self._vault = vault
        self._ship = ship
        self._authors = authors
        self._tokens = tokens
        self._pulls = pulls
        self._names = names
        self._variables = variables or {}
        self._open: dict[int, Path] = {}
        self._attending: dict[int, AgentListener] = {}
        self._in_place: dict[Path, asyncio.Lock] = {}
        self._kept: set[tuple[int, int]] = set()

    async def open(self, session: Session) -> Path:
        """Make the workspace of a session ready.

        Raises:
            RepositoryError: its repository or its folder cannot be used.
            OSError: it cannot be made.
        """
        own = await self._folders.open(session)
        target = self._target(session)
        if isinstance(target, Repository):
            own = await self._open_clone(session, target)
        elif isinstance(target, Path):
            own = self._folder_in_place(target)
        self._open[session.id] = own
        return own

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Lay files beside a session's workspace and tell where they are.

        Raises:
            OSError: one of them cannot be read or written.
        """
        return await self._folders.bring(session, files)

    def outgoing(self, session: Session) -> Path:
        """Tell where a session's agent lays what people shall get: never in its workspace."""
        return outgoing(self._folders.folder(session))

    async def close(self, session_id: int) -> None:
        """Let go of a workspace whose agent is gone; what is in it stays."""
        folder = self._open.pop(session_id, None)
        if folder is not None:
            await self._checkouts.close(folder)

    def visible(self, workspace: Path) -> tuple[Path, ...]:
        """Tell what else an agent must see that works in a workspace."""
        beside_it = [
            beside(self._folders.folder(session))
            for session_id, folder in self._open.items()
            if folder == workspace and (session := self._sessions.session(session_id)) is not None
        ]
        return (*self._checkouts.visible(workspace), *beside_it)

    def variables(self, workspace: Path) -> Mapping[str, str]:
        """Tell which variables an agent gets that works in a workspace."""
        for session_id, folder in self._open.items():
            session = self._sessions.session(session_id) if folder == workspace else None
            if session is not None:
                return self._variables.get(self._target(session), {})
        return {}

    @asynccontextmanager
    async def attended(
        self,
        session: Session,
        listener: AgentListener,
        *,
        meanwhile: Callable[[], AbstractAsyncContextManager[None]],
    ) -> AsyncIterator[None]:
        """Have a workspace for one turn: what needs a person in it is asked of that turn."""
        self._attending[session.id] = listener
        try:
            target = self._target(session)
            if isinstance(target, Path):
                lock = self._in_place.setdefault(target.resolve(), asyncio.Lock())
                async with _held(lock, meanwhile):
                    yield
            else:
                yield
        finally:
            del self._attending[session.id]

    def waits(self, session: Session) -> bool:
        """Tell whether another session is at work in the folder that this one needs."""
        target = self._target(session)
        lock = self._in_place.get(target.resolve()) if isinstance(target, Path) else None
        return lock is not None and lock.locked()

    def describe(self, session: Session) -> WorkspaceView:
        """Tell where a session works."""
        target = self._target(session)
        if isinstance(target, Path):
            return WorkspaceView("folder", str(target))
        if target is None:
            return WorkspaceView("empty")
        record = self._records.latest(session.id)
        if record is None or record.repository != target:
            return WorkspaceView("clone", target.name)
        return WorkspaceView(
            "clone", target.name, record.branch, record.base, record.link, record.sent
        )

    async def diff(self, session: Session) -> str:
        """Show what a session changed in its clone since it began."""
        record = self._records.latest(session.id)
        if record is None or record.state != "ready":
            return ""
        clone = await self._clone(session, record)
        return self._vault.redact(await self._checkouts.diff(clone, record.commit))

    async def ship(self, session: Session, work: Work) -> str:
        """Deliver what came of a turn, as the agent's entry says; returns what to say about it.

        Raises:
            RepositoryError: git cannot do it.
        """
        session = self._sessions.session(session.id) or session  # its place may have been renamed
        record = self._records.latest(session.id)
        how = self._ship.get(session.key.agent, "none")
        if record is None or record.state != "ready" or how == "none" or not record.branch:
            return ""
        if record.repository != self._target(session):
            return ""
        clone = await self._clone(session, record)
        message = self._vault.redact(commit_message(work, session.key))
        gathered = await self._checkouts.gather(clone, message)
        if gathered.problem:
            return f"Nothing was shipped: {gathered.problem}. The work is kept there."
        commit = gathered.commit
        unchanged = commit == record.commit and not record.sent
        if unchanged or (commit == record.told and not work.continued):
            return ""
        if commit != record.sent:
            if refusal := await self._checkouts.push(clone, commit):
                return f"Not pushed: {refusal}"
            await self._sent(record, commit)
        return await self._propose(session, replace(record, sent=commit), clone, work)

    async def reap(self, *, before: float) -> Sequence[str]:
        """Throw away clones that nobody used since a time; says which were kept, and why."""
        kept: list[str] = []
        for record in await self._records.all():
            session = self._sessions.session(record.session)
            if session is None or session.id in self._open or _in_use(session, before):
                continue
            clone = await self._clone(session, record)
            held = await self._checkouts.unshipped(clone, sent=record.sent, start=record.commit)
            name = (record.session, record.number)
            if held and name not in self._kept:
                self._kept.add(name)
                words = f"The clone of {session.key} is kept, since it holds {held}."
                await self._note(session, words)
                kept.append(words)
            elif not held:
                await self._checkouts.remove(clone)
                await persist(self._clock, self._records.gone, record.session, record.number)
        return kept

    def _target(self, session: Session) -> Target:
        chosen = self._places.place(session.place).repository
        target = self._directory.target(session.place, chosen)
        if not isinstance(target, Repository) or self._names is None:
            return target
        return self._directory.renamed(target, self._names.now)

    def _folder_in_place(self, target: Path) -> Path:
        try:
            return self._directory.check_folder(target)
        except Conflict as error:
            raise RepositoryError(f"{target}: {error}") from error

    async def _open_clone(self, session: Session, target: Repository) -> Path:
        record = self._records.latest(session.id)
        if record is None or record.repository != target or record.state == "gone":
            record = await self._begin(session, target, record)
        clone = await self._clone(session, record)
        if record.state == "ready" and not await self._reopened(session, record, clone):
            record = await self._begin(session, target, record)
            clone = await self._clone(session, record)
        if record.state == "opening":
            await self._make(session, record, clone)
        return clone.folder

    async def _begin(self, session: Session, target: Repository, last: Checkout | None) -> Checkout:
        """Decide how a clone is opened, and write that down before anything is made."""
        number = 1 if last is None else last.number + 1
        head = None if self._pulls is None else await self._pulls.head(session)
        if last is not None and last.repository == target and last.sent:
            record = Checkout(session.id, number, target, "existing", last.branch, told=last.told)
        elif head is not None and (not is_branch(head.branch) or self._only_reads(session)):
            record = Checkout(session.id, number, target, "detached", start=head.commit)
        elif head is not None:
            record = Checkout(session.id, number, target, "existing", head.branch)
        else:
            branch = branch_name(session.key, session.place, session.title)
            # Places may have names that differ only in what a branch cannot have.
            owner = self._records.of_branch(target.url, branch)
            branch = branch if owner is None else f"{branch}-{session.id}-{number}"
            record = Checkout(session.id, number, target, "branch", branch)
        await persist(self._clock, self._records.begin, record)
        return record

    def _only_reads(self, session: Session) -> bool:
        return self._ship.get(session.key.agent) == "none"

    async def _make(self, session: Session, record: Checkout, clone: Clone) -> None:
        opened = await self._checkouts.open(
            clone,
            fresh=True,
            on_sent=lambda commit: self._sent(record, commit),
            ask=lambda question: self._ask(session.id, question),
        )
        if opened is None:
            raise RepositoryError(f"There is no clone of {record.repository.name}.")
        said = await self._checkouts.prepare(clone)
        if said is not None:
            await self._note(session, said)
        await persist(self._clock, self._records.ready, record.session, record.number, opened)

    async def _reopened(self, session: Session, record: Checkout, clone: Clone) -> bool:
        """Open a clone that is there; False if it cannot be used any more, and that is said."""
        try:
            await self._checkouts.open(
                clone,
                fresh=False,
                on_sent=lambda commit: self._sent(record, commit),
                ask=lambda question: self._ask(session.id, question),
            )
        except RepositoryError as error:
            words = "Its clone cannot be used any more and is kept as it is; another one is made."
            await self._note(session, f"{words} {error}")
            return False
        return True

    async def _clone(self, session: Session, record: Checkout) -> Clone:
        agent = session.key.agent
        author = None if self._tokens is None else await self._tokens.author(agent)
        return Clone(
            folder=self._folders.root / f"{session.id}-{agent}-{record.number}",
            session=session.key,
            repository=record.repository,
            way=record.way,
            author=author or self._authors[agent],
            branch=record.branch,
            start=record.start,
        )

    async def _sent(self, record: Checkout, commit: str) -> None:
        await persist(self._clock, self._records.sent, record.session, record.number, commit)

    async def _propose(self, session: Session, record: Checkout, clone: Clone, work: Work) -> str:
        """Say what was pushed and, if so wished, propose it."""
        words = [f"Pushed to `{record.branch}` of {record.repository.name}."]
        link = record.link
        if self._ship[session.key.agent] == "pr" and self._pulls and record.way == "branch":
            proposal = Proposal(
                record.repository,
                session.key.agent,
                session.id,
                head=record.branch,
                base=record.base,
                title=self._vault.redact(subject(work, session.key)),
                body=self._vault.redact(proposal_body(work, session.key)),
            )
            try:
                link = await self._pulls.propose(proposal)
            except RepositoryError as error:
                words.append(f"The pull request could not be opened: {error}")
                return " ".join(words)
            words = [f"Pushed to `{record.branch}` of {record.repository.name}: {link}"]
        words += await self._conflicts(record, clone, session)
        await persist(
            self._clock, self._records.told, record.session, record.number, record.sent, link
        )
        return " ".join(words)

    async def _conflicts(self, record: Checkout, clone: Clone, session: Session) -> list[str]:
        files = await self._checkouts.conflicts(clone, record.base, record.sent)
        if not files:
            return []
        named = ", ".join(files[:NAMED_FILES])
        return [
            f"It conflicts with `{record.base}` in {named}. "
            f"To have that resolved, tell {session.key.agent} to merge `{record.base}` into it."
        ]

    async def _ask(self, session_id: int, question: str) -> bool:
        """Have the turn that runs ask a person; outside of turns nobody can be asked."""
        listener = self._attending.get(session_id)
        if listener is None:
            return False
        options = (
            AskOption(ALLOW, "Allow once", "allow_once"),
            AskOption(REFUSE, "Reject", "reject_once"),
        )
        return await listener.on_ask(AskRequest("push", question, options)) == ALLOW

    async def _note(self, session: Session, words: str) -> None:
        entry = Entry("notice", self._vault.redact(words), session=session.id)
        await persist(self._clock, self._transcript.append, [entry])


@asynccontextmanager
async def _held(
    lock: asyncio.Lock, meanwhile: Callable[[], AbstractAsyncContextManager[None]]
) -> AsyncIterator[None]:
    """Hold a lock; whoever waits for it must not hold what its holder may need."""
    if lock.locked():
        async with meanwhile():
            await lock.acquire()
    else:
        await lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _in_use(session: Session, before: float) -> bool:
    return session.state is not SessionState.REMOVED and session.updated_at >= before
