"""Opens, keeps and ships workspaces: an empty folder, a folder in place, a clone.

A folder in place has one turn at a time, and only one named in the settings or on the page is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from app.core.base import Base
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory
from app.core.repositories.folders import Folders, Hold, UnusedWorkspaces, is_folder_below
from app.core.repositories.forge import Forge
from app.core.repositories.joint_work import JointWork, SharedWork
from app.core.repositories.shipping import Proposing, SharedClones, Shipper
from app.errors import Conflict, RepositoryError
from app.model.ports import AgentListener
from app.model.proposals import Subject, Work
from app.model.types import File, Session
from app.model.updates import AskFact, AskOption, AskRequest
from app.model.workspaces import (
    Checkout,
    Diff,
    Repository,
    Shipped,
    Target,
    Unshipped,
    Workspace,
    WorkspaceView,
    attachment_folder,
    outgoing,
)
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts

ALLOW, REFUSE = "allow", "reject"


class RepoProvider:
    """Workspaces of every kind."""

    def __init__(
        self,
        base: Base,
        folders: Folders,
        clones: Clones,
        checkouts: GitCheckouts,
        directory: Directory,
        *,
        forge: Forge | None = None,
        variables: Mapping[Target, Mapping[str, str]] | None = None,
        name_of: Callable[[str], str] = str,
    ) -> None:
        """Provide workspaces; `name_of` returns what people call an agent, present or removed."""
        self._base = base
        self._folders = folders
        self._clones = clones
        self._checkouts = checkouts
        self._directory = directory
        self._variables = variables or {}
        self._shipper = Shipper(base, clones, checkouts, forge)
        shared = SharedClones(base, clones, checkouts)
        self._joint = JointWork(base, shared, checkouts, forge=forge, name_of=name_of)
        self._open: dict[int, Path] = {}
        self._attending: dict[int, AgentListener] = {}
        self._in_place: dict[Path, asyncio.Lock] = {}
        self._warned: dict[int, set[str]] = {}
        self._changing: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self.unused = UnusedWorkspaces(
            folders,
            clones,
            base.stores.sessions,
            is_open=self._is_open,
            alone=self._alone,
        )
        """Removes the workspaces that no session uses."""

    def _is_open(self, session: int) -> bool:
        """Tell whether a session works in its folders, here or at another member."""
        return session in self._open or self._base.signals.find_server(session) is not None

    def target(self, session: Session, chosen: str | None) -> Target:
        """Return what a session works on, given the choice in its place."""
        if self._base.agent(session.key.agent).host:
            return None  # what is on this machine is not on its own
        return self._directory.target(session.place, chosen)

    async def open(self, session: Session, target: Target) -> Workspace:
        """Prepare the workspace of a session.

        Raises:
            RepositoryError: its repository or its folder cannot be used.
            OSError: it cannot be made.
        """
        async with self._alone(session.id):
            target = self._follow_rename(target)
            had_folder = self._folders.folder(session).is_dir()
            own = folder = await self._folders.open(session)
            readonly: tuple[Path, ...] = ()
            if isinstance(target, Repository):
                folder = await self._clones.open(
                    session, target, ask=partial(self._ask, session.id)
                )
            elif isinstance(target, Path):
                try:
                    folder = self._directory.check_folder(target)
                except Conflict as error:
                    raise RepositoryError(f"{target}: {error}") from error
                await asyncio.to_thread(self._folders.mark_beginning, session)
                readonly = await self._checkouts.in_place.protected(folder, session.key.agent)
            elif session.acp_session_id is not None and not had_folder:
                await self._clones.note(session, wording.FOLDER_LOST)
            delegated = self._base.stores.tree.begun_for(session.id)
            within = delegated.folder if delegated is not None and target is not None else ""
            if within and not await asyncio.to_thread(is_folder_below, folder, within):
                raise RepositoryError(wording.NO_FOLDER.format(folder=within))
            self._open[session.id] = folder
            if self._base.agent(session.key.agent).host:
                return Workspace(folder, visible=(attachment_folder(own),))
            return Workspace(
                folder,
                within,
                outgoing=outgoing(own),
                home=self._folders.home(session),
                visible=(*self._checkouts.visible(folder), attachment_folder(own)),
                readonly=readonly,
                variables=self._variables.get(target, {}),
            )

    async def lend(self, session: Session, branch: str, folder: str) -> str:
        """Name what a session works on, for another one that gets a branch or a folder of it.

        Raises:
            Conflict: the branch or the folder is not part of it.
        """
        target = self._target_now(session)
        if branch:  # its folders are looked at when it is open
            if not isinstance(target, Repository):
                raise Conflict(wording.NO_REPOSITORY)
            try:
                known = await self._checkouts.find_branch(target, session.key.agent, branch)
            except RepositoryError as error:
                raise Conflict(str(error)) from error
            if known is None:
                raise Conflict(wording.NO_BRANCH.format(branch=branch, name=target.name))
        elif folder:
            own = None if target is None else self.folder(session)
            if own is None or not await asyncio.to_thread(is_folder_below, own, folder):
                raise Conflict(wording.NO_FOLDER.format(folder=folder))
        return self._directory.write(target)

    async def join(self, session: Session, target: Target, texts: Sequence[str]) -> SharedWork:
        """Prepare a session's clone for a turn, as far as other agents have a part in its work.

        Raises:
            RepositoryError: the repository cannot be used.
        """
        target = self._follow_rename(target)
        if not isinstance(target, Repository):
            return SharedWork()
        async with self._alone(session.id):
            ask = partial(self._ask, session.id)
            return await self._joint.join(session, target, texts, ask)

    async def find_subject(self, session: Session) -> Subject | None:
        """Tell what a session reviews; None if it is nothing that the bridge knows a diff of.

        Raises:
            RepositoryError: the repository cannot be used.
        """
        target = self.repository(session)
        if target is None:
            return None
        return await self._joint.find_subject(session, target)

    def repository(self, session: Session) -> Repository | None:
        """Return the repository that a session works on, outside of any turn."""
        target = self._target_now(session)
        return target if isinstance(target, Repository) else None

    def is_to_open(self, session: Session, target: Target) -> bool:
        """Tell whether a session has to work elsewhere than before."""
        return isinstance(target, Repository) and self._clones.is_to_open(session)

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Copy files next to a session's workspace and return their paths.

        Raises:
            OSError: one of them cannot be read or written.
        """
        return await self._folders.bring(session, files)

    def outgoing(self, session: Session) -> Path:
        """Return the folder for a session's outgoing files: never in its workspace."""
        return outgoing(self._folders.folder(session))

    async def close(self, session_id: int) -> None:
        """Release a workspace whose agent is gone; its content stays."""
        folder = self._open.pop(session_id, None)
        if folder is not None:
            await self._checkouts.close(folder)

    @asynccontextmanager
    async def attended(
        self,
        session: Session,
        target: Target,
        listener: AgentListener,
        *,
        meanwhile: Callable[[], AbstractAsyncContextManager[None]],
    ) -> AsyncIterator[Hold]:
        """Hold a workspace for one turn, which asks a person where one is needed.

        Where sessions share a folder, the second one waits, inside `meanwhile`.
        """
        self._attending[session.id] = listener
        if (folder := self._open.get(session.id)) is not None:
            self._checkouts.resume(folder)
        try:
            hold = Hold()
            if isinstance(target, Path):
                hold = Hold(self._in_place.setdefault(target.resolve(), asyncio.Lock()))
            await hold.take(meanwhile)
            try:
                yield hold
            finally:
                hold.leave()
        finally:
            await self.leave(session.id)

    async def leave(self, session_id: int) -> None:
        """Accept nothing more from a session's agent until its next turn: no ask and no push."""
        self._attending.pop(session_id, None)
        if (folder := self._open.get(session_id)) is not None:
            await self._checkouts.pause(folder)

    def is_occupied(self, target: Target) -> bool:
        """Tell whether a session is at work in a folder that only one may use at a time."""
        lock = self._in_place.get(target.resolve()) if isinstance(target, Path) else None
        return lock is not None and lock.locked()

    def describe(self, session: Session) -> WorkspaceView:
        """Describe where a session works, outside of any turn."""
        return self.view(session, self._target_now(session))

    def view(self, session: Session, target: Target) -> WorkspaceView:
        """Describe where a session works."""
        target = self._follow_rename(target)
        if host := self._base.agent(session.key.agent).host:
            return WorkspaceView("remote", host)
        if isinstance(target, Repository):
            return self._clones.view(session, target)
        return WorkspaceView("empty") if target is None else WorkspaceView("folder", str(target))

    def folder(self, session: Session) -> Path | None:
        """Return the folder that a session works in, if there is one."""
        target = self._target_now(session)
        if isinstance(target, Repository):
            return self._clones.folder(session, target)
        return target or self._folders.folder(session)

    async def changes(self, session: Session) -> Sequence[Diff]:
        """Show what changed where a session works, by how far it got, without known secrets."""
        target = self._target_now(session)
        own = self._folders.folder(session)
        found: Sequence[Diff] = ()
        try:
            if isinstance(target, Repository):
                found = await self._clones.changes(session)
            elif target is not None and own.is_dir():
                real, began = await asyncio.to_thread(target.resolve), self._folders.began(session)
                in_place = self._checkouts.in_place
                found = await in_place.changes(real, own, session.key.agent, began=began)
        except RepositoryError as error:
            found = (Diff("uncommitted", problem=str(error)),)
        return [each.redact(self.redact) for each in found]

    def redact(self, text: str) -> str:
        """Remove known secrets from a text of a workspace, before marks divide its words."""
        return self._clones.redact(text)

    def _target_now(self, session: Session) -> Target:
        chosen = self._base.stores.decisions.place(session.place).repository
        return self._follow_rename(self.target(session, chosen))

    async def ship(self, session: Session, target: Target, work: Work) -> Shipped:
        """Ship the result of a turn as the agent's entry says.

        Raises:
            RepositoryError: git cannot do it.
        """
        now = self._base.stores.sessions.session(session.id) or session
        # A place that has a new name got it from its repository.
        target = self._follow_rename(
            target if now.place == session.place else self.target(now, None)
        )
        if isinstance(target, Path):
            return Shipped(note=await self._warn_of_repositories(now, target))
        if target is None:
            return Shipped()
        if self._base.stores.tree.is_held(session.id):
            await self._shipper.hold(now, target, work)
            return Shipped()
        return await self._shipper.ship(now, target, work)

    async def _warn_of_repositories(self, session: Session, folder: Path) -> str:
        """Tell of repositories that a session made or changed in a person's folder, once each."""
        found = await self._checkouts.in_place.find_repositories(
            await asyncio.to_thread(folder.resolve),
            self._folders.folder(session),
            session.key.agent,
            began=self._folders.began(session),
        )
        known = self._warned.setdefault(session.id, set())
        new = [name for name in found if name not in known]
        known.update(new)
        return wording.NEW_REPOSITORIES.format(names=wording.some(new)) if new else ""

    async def ship_picked(self, session: Session, work: Work) -> Shipped:
        """Ship work that was held until people picked it, outside of any turn.

        Raises:
            RepositoryError: git cannot do it.
        """
        target = self._target_now(session)
        if not isinstance(target, Repository):
            return Shipped()
        was_open = session.id in self._open
        await self.open(session, target)
        try:
            return await self._shipper.ship(session, target, work)
        finally:
            if not was_open:
                await self.close(session.id)
            elif session.id not in self._attending:
                await self.leave(session.id)

    async def propose(self, session: Session, work: Work, *, title: str, body: str) -> Proposing:
        """Ship what a session has done so far, under its agent's own words.

        Raises:
            RepositoryError: git cannot do it, or the agent's work is not shipped.
        """
        target = self._target_now(session)
        if not isinstance(target, Repository):
            raise RepositoryError(wording.NO_CLONE)
        return await self._shipper.propose(session, target, work, title=title, body=body)

    def checkout(self, session: Session) -> Checkout | None:
        """Return the clone that a session works in, as it is stored; None without one."""
        target = self._target_now(session)
        return self._clones.record(session, target) if isinstance(target, Repository) else None

    async def unshipped(self, session: Session) -> Sequence[Unshipped]:
        """List the clones of a session with work that is nowhere else."""
        found: list[Unshipped] = []
        for record in [each for each in await self._clones.all() if each.session == session.id]:
            try:
                held = await self._clones.unshipped(session, record)
            except RepositoryError as error:
                held = str(error)
            if held:
                found.append(Unshipped(record.repository.name, record.branch, held))
        return found

    def _alone(self, session_id: int) -> asyncio.Lock:
        """Return the lock that keeps a workspace from being opened and removed at the same time."""
        return self._changing.setdefault(session_id, asyncio.Lock())

    def _follow_rename(self, target: Target) -> Target:
        """Follow a renamed repository, even during a turn."""
        if not isinstance(target, Repository):
            return target
        return self._directory.renamed(target, self._base.stores.names.now)

    async def _ask(self, session_id: int, question: str, files: Sequence[str]) -> bool:
        """Have the running turn ask a person; outside of turns the answer is no."""
        listener = self._attending.get(session_id)
        if listener is None:
            return False
        options = (
            AskOption(ALLOW, wording.ALLOW_ONCE, "allow_once"),
            AskOption(REFUSE, wording.REJECT, "reject_once"),
        )
        facts = tuple(AskFact("file", path) for path in files)
        request = AskRequest("push", question, options, subject="\n".join(files), facts=facts)
        return await listener.on_ask(request) == ALLOW
