"""Says how a workspace is opened, kept and shipped: an empty folder, a folder in place, a clone.

A folder in place has one turn at a time, and nobody gets one that the settings do not name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from app.core.folders import Folders, beside, outgoing
from app.core.ports import AgentListener, Checkouts
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory, Target
from app.core.stores.inbox import IntakeStore
from app.core.stores.repositories import NameStore
from app.core.stores.sessions import SessionStore
from app.core.types import File, Session, SessionState
from app.core.updates import AskOption, AskRequest
from app.core.workspaces import Checkout, Repository, Work, WorkspaceView
from app.errors import Conflict, RepositoryError

logger = logging.getLogger(__name__)

ALLOW, REFUSE = "allow", "reject"


class RepoProvider:
    """Workspaces of every kind; implements the port `Workspaces`."""

    def __init__(
        self,
        folders: Folders,
        clones: Clones,
        checkouts: Checkouts,
        places: IntakeStore,
        sessions: SessionStore,
        *,
        directory: Directory,
        names: NameStore | None = None,
        variables: Mapping[Target, Mapping[str, str]] | None = None,
    ) -> None:
        self._folders = folders
        self._clones = clones
        self._checkouts = checkouts
        self._places = places
        self._sessions = sessions
        self._directory = directory
        self._names = names
        self._variables = variables or {}
        self._open: dict[int, Path] = {}
        self._attending: dict[int, AgentListener] = {}
        self._in_place: dict[Path, asyncio.Lock] = {}
        self._changing: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def open(self, session: Session) -> Path:
        """Make the workspace of a session ready.

        Raises:
            RepositoryError: its repository or its folder cannot be used.
            OSError: it cannot be made.
        """
        async with self._alone(session.id):
            own = await self._folders.open(session)
            target = self._target(session)
            if isinstance(target, Repository):
                own = await self._clones.open(
                    session, target, ask=lambda question: self._ask(session.id, question)
                )
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
        if isinstance(target, Repository):
            return self._clones.view(session, target)
        return WorkspaceView("empty") if target is None else WorkspaceView("folder", str(target))

    async def diff(self, session: Session) -> str:
        """Show what a session changed in its clone since it began."""
        return await self._clones.diff(session)

    async def ship(self, session: Session, work: Work) -> str:
        """Deliver what came of a turn, as the agent's entry says; returns what to say about it.

        Raises:
            RepositoryError: git cannot do it.
        """
        session = self._sessions.session(session.id) or session  # its place may have been renamed
        target = self._target(session)
        if not isinstance(target, Repository):
            return ""
        return await self._clones.ship(session, target, work)

    async def reap(self, *, before: float) -> Sequence[str]:
        """Throw away clones that nobody used since a time; says which were kept, and why."""
        kept: list[str] = []
        for record in await self._clones.all():
            session = self._resting(record.session, before)
            if session is None:
                continue
            try:
                kept.append(await self._reap(session, record, before))
            except RepositoryError as error:
                logger.warning("the clone of %s cannot be looked at: %s", session.key, error)
        return list(filter(None, kept))

    async def _reap(self, session: Session, record: Checkout, before: float) -> str:
        """Throw a clone away, unless it holds something; then that is said once."""
        if held := await self._clones.unshipped(session, record):
            return await self._clones.keep(session, record, held)
        async with self._alone(session.id):
            # Somebody may have come back while it was looked at.
            if self._resting(session.id, before) is not None:
                await self._clones.remove(session, record)
        return ""

    def _resting(self, session_id: int, before: float) -> Session | None:
        """Read a session unless it is at work or was used since a time."""
        session = self._sessions.session(session_id)
        if session is None or session_id in self._open or _in_use(session, before):
            return None
        return session

    def _alone(self, session_id: int) -> asyncio.Lock:
        """Keep a workspace from being opened and thrown away at the same time."""
        return self._changing.setdefault(session_id, asyncio.Lock())

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
