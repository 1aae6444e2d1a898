"""Opens, commits, pushes and removes the clones of all sessions, with their mirrors and gates.

The core decides and this module runs git; it keeps no state that is not also on disk or in the
store, so that repeating a step repairs a crash at any point.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.descent import discard
from app.errors import GitFailed, RepositoryError
from app.model.proposals import branch_ref, is_branch
from app.model.workspaces import (
    Changes,
    Clone,
    Compared,
    Diff,
    Followed,
    Gathered,
    OpenedClone,
    Repository,
    Target,
)
from app.repos import clone as clones
from app.repos import differences
from app.repos.agent_remote import FOLDER, AgentRemote
from app.repos.gate import Gate, GateContext, Guard, conflicts
from app.repos.git import CredentialSource, Git, is_damage
from app.repos.in_place import FoldersInPlace
from app.repos.lfs import LargeFiles
from app.repos.mirror import Mirrors
from app.repos.preparation import Preparation
from app.repos.sandboxed_git import Inside, SandboxedGit
from app.vault import Vault

logger = logging.getLogger(__name__)

PUSH_SECONDS: Final = 2400.0
"""How long a push at the end of a turn may take, including the remote's half hour."""
_EXCLUDES: Final = "excludes"


class GitCheckouts:
    """Clones, mirrors and gates on this disk."""

    def __init__(
        self,
        root: Path,
        isolation: Callable[[str], SandboxedGit | None],
        git: Git,
        mirrors: Mirrors,
        *,
        tokens: CredentialSource | None,
        vault: Vault,
        person: Mapping[str, str],
        variables: Mapping[Target, Mapping[str, str]] | None = None,
        guard: Guard | None = None,
        unshared: Sequence[str] = (),
    ) -> None:
        """Keep gates below `root`; `unshared` are files that are not committed for agents."""
        self.gates = root
        """The folder of all gates."""
        self._isolate = isolation
        self._git = git
        self._mirrors = mirrors
        self._person = dict(person)
        self._unshared = unshared
        large = LargeFiles(git, mirrors, tokens)
        self._shared = GateContext(git, mirrors, large, tokens, vault, self._person, guard)
        self._preparation = Preparation(
            git, mirrors, root, self._inside, self._has_lfs, variables or {}
        )
        self.in_place = FoldersInPlace(git, self._isolation, self._person)
        """What git does in folders of people."""
        self._open: dict[Path, Gate] = {}

    async def open(
        self,
        clone: Clone,
        *,
        fresh: bool,
        start: str = "",
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> OpenedClone | None:
        """Make a clone ready for its agent; a fresh one replaces what is in its place.

        `start` is the commit that an existing one began with. `on_sent` is told of each commit
        that reached the remote, before the agent is; `ask` has a person decide on a push of files.
        None if it existed before.

        Raises:
            RepositoryError: it cannot be opened.
        """
        await self.close(clone.folder)
        if not fresh:
            gate = await self._listen(clone, on_sent, ask)
            if await self._mirrors.commit(clone.repository, start) is not None:
                await gate.begin(start)  # another machine may have made the clone
            settings = gate.settings(with_large_files=self._has_lfs())
            mirror = self._mirrors.path(clone.repository)
            await clones.tidy(self._inside(clone), clone, mirror, settings)
            await clones.head(self._inside(clone))
            return None
        is_ref = clone.way == "detached" and clone.start.startswith("refs/")
        also = (clone.start,) if is_ref else ()
        await self._mirrors.check_room()
        await self._mirrors.refresh(clone.repository, clone.agent, *also)
        gate = await self._listen(clone, on_sent, ask)
        try:
            return await self._make(clone, gate)
        except GitFailed as error:
            if not is_damage(error.words):
                raise
            logger.warning("the mirror of %s is damaged: %s", clone.repository.name, error)
        await self._mirrors.rebuild(clone.repository, clone.agent)
        return await self._make(clone, gate)

    async def find_mirror(self, clone: Clone) -> None:
        """Have the mirror that a clone borrows from, fetched again if it was deleted.

        Raises:
            RepositoryError: it cannot be fetched now.
        """
        if not self._mirrors.path(clone.repository).exists():
            await self._mirrors.refresh(clone.repository, clone.agent)

    async def reach(self, repository: Repository, agent: str) -> None:
        """Ask a remote whether it has a repository that an agent may read.

        Raises:
            RepositoryError: it has none, or does not answer.
        """
        await self._mirrors.reach(repository, agent)

    def resume(self, folder: Path) -> None:
        """Accept pushes from an open clone again."""
        if (gate := self._open.get(folder)) is not None:
            gate.resume()

    async def pause(self, folder: Path) -> None:
        """Refuse pushes from an open clone for now; one that is under way is ended."""
        if (gate := self._open.get(folder)) is not None:
            await gate.pause()

    async def close(self, folder: Path) -> None:
        """Accept no more pushes from a clone."""
        gate = self._open.pop(folder, None)
        if gate is not None:
            await gate.close()

    async def close_all(self) -> None:
        """Accept no more pushes from any clone."""
        for folder in list(self._open):
            await self.close(folder)

    def visible(self, folder: Path) -> tuple[Path, ...]:
        """Return what else an agent that works in a folder must see."""
        gate = self._open.get(folder)
        return () if gate is None else (*gate.remote.visible, gate.mirror)

    async def gather(self, clone: Clone, message: str) -> Gathered:
        """Commit what its agent left uncommitted.

        Raises:
            RepositoryError: git cannot do it there.
        """
        return await clones.gather(self._inside(clone), clone, message)

    async def push(self, clone: Clone, commit: str) -> str:
        """Push a commit of a clone through its gate; returns why it was refused.

        Raises:
            RepositoryError: it did not reach the gate.
        """
        gate = self._gate(clone)
        gate.last = None
        await self._hand_over_large_files(clone, commit)
        words = ""
        try:
            await self._inside(clone).git(
                *("push", "--quiet", f"--receive-pack={gate.push_command}"),
                str(gate.remote.folder),
                f"{commit}:refs/heads/{clone.branch}",
                seconds=PUSH_SECONDS,
            )
        except GitFailed as error:
            words = error.words
        # Only the gate's verdict counts: output from inside may be anything.
        if gate.last is not None and gate.last.commit == commit:
            return gate.last.refusal
        if not words:
            return ""
        raise RepositoryError(f"The push did not reach the bridge: {words.strip()[-500:]}")

    async def conflicts(self, clone: Clone, base: str, commit: str) -> tuple[str, ...]:
        """List the files in which a commit conflicts with the base branch."""
        try:
            await self._mirrors.refresh(clone.repository, clone.agent)
        except RepositoryError as error:
            logger.warning("cannot update the mirror of %s: %s", clone.repository.name, error)
        return await self._gate(clone).conflicts(base, commit)

    async def collisions(
        self, repository: Repository, agent: str, base: str, branch: str
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return a branch's commit on the remote, and the files that conflict with the base.

        None if either branch does not exist.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        mirror = await self._mirrors.refresh(repository, agent)
        commit = await self._mirrors.commit(repository, f"refs/heads/{branch}")
        onto = await self._mirrors.commit(repository, f"refs/heads/{base}")
        if commit is None or onto is None:
            return None
        await self._mirrors.complete_merge(repository, agent, onto, commit, seen_from=mirror)
        return commit, await conflicts(self._git, mirror, onto, commit)

    async def compare(
        self, repository: Repository, agent: str, head: str, base: str
    ) -> Compared | None:
        """Show what a commit or a ref of the remote changes in the base; None if it is missing.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        return await differences.compare(self._git, self._mirrors, repository, agent, head, base)

    async def find_branch(self, repository: Repository, agent: str, branch: str) -> str | None:
        """Return the last commit of a branch of the remote; None if there is none of that name.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        if not is_branch(branch):
            return None
        await self._mirrors.refresh(repository, agent)
        return await self._mirrors.commit(repository, branch_ref(branch))

    async def check_out(self, clone: Clone, commit: str) -> None:
        """Check out another commit in a clone for reading; changes in it are dropped.

        Raises:
            RepositoryError: git cannot do it there.
        """
        await self._mirrors.check_size(clone.repository, commit)
        await clones.check_out(self._inside(clone), commit)

    async def follow(self, clone: Clone, commit: str) -> Followed:
        """Bring the branch of a clone up to the remote, unless it has this commit already.

        Raises:
            RepositoryError: the remote cannot be reached.
        """
        return await clones.follow(self._inside(clone), self._git, self._mirrors, clone, commit)

    async def rename(self, old: Repository, new: Repository) -> None:
        """Keep the mirror and the clones of a repository that was renamed or moved."""
        await self._mirrors.rename(old, new)
        for gate in self._open.values():
            gate.rename(old, new)

    async def changes(self, clone: Clone, *, start: str, sent: str) -> Sequence[Diff]:
        """Show what a session changed since the commit it began with, by how far it got."""
        return await differences.changes(self._inside(clone), start=start, sent=sent)

    async def count_changes(self, clone: Clone, since: str) -> Changes | None:
        """Measure how much a session changed; None if git cannot tell."""
        return await differences.count(self._inside(clone), since)

    async def unshipped(self, clone: Clone, *, sent: str, start: str) -> str:
        """Say what a clone holds that is nowhere else; empty if it can be deleted."""
        if not (clone.folder / ".git").is_dir():
            return ""
        return await clones.unshipped(self._inside(clone), sent=sent, start=start)

    async def remove(self, folder: Path) -> None:
        """Delete a clone and its gate."""
        await self.close(folder)
        for each in (folder, self.gates / folder.name):
            await asyncio.to_thread(discard, each)

    async def prepare(self, clone: Clone) -> str | None:
        """Fetch the submodules of a new clone and run the repository's own setup in it.

        Returns what to tell people about it; None if there is nothing to tell.
        """
        return await self._preparation.run(clone)

    async def _hand_over_large_files(self, clone: Clone, commit: str) -> None:
        """Let git-lfs upload what a commit points to, as its hook does for the agent."""
        if not (self._has_lfs() and (clone.folder / ".git" / "lfs").is_dir()):
            return
        try:
            await self._inside(clone).git("lfs", "push", "origin", commit, seconds=PUSH_SECONDS)
        except GitFailed as error:
            # The gate says what is missing, if anything is.
            logger.info("large files of %s: %s", clone.session, error)

    def _has_lfs(self) -> bool:
        return shutil.which("git-lfs", path=self._person.get("PATH", "")) is not None

    async def _make(self, clone: Clone, gate: Gate) -> OpenedClone:
        mirrors, repository = self._mirrors, clone.repository
        base = clone.base or await mirrors.default_branch(repository)
        wanted = {
            "branch": f"refs/heads/{base}",
            "existing": f"refs/heads/{clone.branch}",
            "detached": clone.start,
        }[clone.way]
        start, pushed = await mirrors.commit(repository, wanted), None
        if clone.way == "branch":
            # By a session that is no longer in the store, or from a machine that is gone.
            pushed = await mirrors.commit(repository, f"refs/heads/{clone.branch}")
        start = pushed or start
        if start is None:
            raise RepositoryError(f"{repository.name} has no {wanted.removeprefix('refs/heads/')}.")
        await mirrors.check_size(repository, start)
        await mirrors.complete(repository, clone.agent, start)
        await gate.begin(start)
        template = gate.remote.folder / "template"
        await asyncio.to_thread(clones.write_template, template, clone)
        await asyncio.to_thread(gate.remote.give, template)
        await clones.make(
            self._inside(clone),
            clone,
            mirror=mirrors.path(repository),
            template=template,
            start=start,
            remote=gate.settings(with_large_files=self._has_lfs()),
        )
        return OpenedClone(base, start, has_branch=pushed is not None)

    async def _listen(
        self,
        clone: Clone,
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> Gate:
        gate = Gate(
            self.gates / clone.folder.name,
            clone,
            self._shared,
            on_sent=on_sent,
            ask=ask,
            user=self._isolation(clone.agent).confinement.user,
        )
        self._open[clone.folder] = gate  # first, so that a half-opened one is closed, too
        await gate.open()
        await asyncio.to_thread(self._write_excludes, gate.remote)
        return gate

    def _isolation(self, agent: str) -> SandboxedGit:
        found = self._isolate(agent)
        if found is None:
            raise RepositoryError("its agent was removed")
        return found

    def _gate(self, clone: Clone) -> Gate:
        gate = self._open.get(clone.folder)
        if gate is None:
            raise RepositoryError("The gate of this session is closed.")
        return gate

    def _inside(self, clone: Clone, *more: Path) -> Inside:
        mirror = self._mirrors.path(clone.repository)
        remote = self.gates / clone.folder.name / FOLDER
        gate = self._open.get(clone.folder)
        visible = (*more, remote, mirror, *(gate.remote.visible if gate is not None else ()))
        isolation = self._isolation(clone.agent)
        settings = {"core.excludesFile": str(remote / _EXCLUDES)}
        return Inside(isolation, clone.folder, clone.home, visible, self._git.bridge, settings)

    def _write_excludes(self, remote: AgentRemote) -> None:
        """Write what git does not add in a clone, where it can only be read inside."""
        file = remote.folder / _EXCLUDES
        file.write_text("".join(f"**/{name}\n" for name in self._unshared))
        remote.give(file)
