"""Receives a session's pushes in its gate, inspects them and pushes them to the remote.

A gate is a bare repository that its agent never sees. The agent has only a read-only folder, its
remote: a socket and a small relay, which git is told to call instead of `git receive-pack`. The
bytes of a push come through the socket, and the bridge's own `git receive-pack` reads them and
checks every object. So no git in the bridge's isolation ever reads what an agent writes
(configuration, hooks, refs, alternates, links), and no ref of the agent is trusted: what goes to
the remote is a commit from the gate, named by its hash.

Before anything is kept, git calls the gate's hook, which asks the bridge over two named pipes and
waits: the answer appears in the agent's own `git push`. The commit is on the remote before the gate
accepts it; a crash in between repeats a push that changes nothing.

A fetch comes through other sockets and sends only names: the bridge updates the mirror, or fetches
the named objects into it, and git reads them there.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.errors import BridgeError, GitFailed, RepositoryError
from app.model.proposals import branch_ref
from app.model.workspaces import Clone, Repository
from app.repos import lfs_relay, wording
from app.repos.agent_remote import FOLDER, HOOK, AgentRemote, error_packet, read_names, receive_push
from app.repos.fetching import remove_locks
from app.repos.git import CredentialSource, Git, access_to, failure, is_damage, is_gone, rejection
from app.repos.inspection import Incoming, Inspector, parse, plain
from app.repos.lfs import LargeFiles
from app.repos.lfs_transfer import LargeFileTransfer
from app.repos.mirror import Mirrors
from app.vault import Vault

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""How many git processes of one agent are served at a time; others wait."""
_CUT_SECONDS: Final = 10.0
"""How long the end of a push that is cut off may take: it has git to stop."""
_BEGUN: Final = "refs/agent-bridge/begun"

Ask = Callable[[str, Sequence[str]], Awaitable[bool]]
"""Asks a person to decide something; True if it is allowed."""
Guard = Callable[[Repository, str, str], Awaitable[str]]
"""Says why pushes of an agent to a branch of a repository need a person's decision, if so."""


@dataclass(frozen=True, slots=True)
class PushVerdict:
    """What became of a push."""

    commit: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class GateContext:
    """What all gates share."""

    git: Git
    mirrors: Mirrors
    large: LargeFiles
    tokens: CredentialSource | None
    vault: Vault
    person: Mapping[str, str]
    """The environment of the person who runs the bridge."""
    guard: Guard | None


class Gate:
    """One session's gate while its agent may push."""

    def __init__(
        self,
        folder: Path,
        clone: Clone,
        shared: GateContext,
        *,
        on_sent: Callable[[str], Awaitable[None]],
        ask: Ask,
        user: int | None,
    ) -> None:
        self._folder = folder
        self._clone = clone
        self._shared = shared
        self._git, self._mirrors, self._vault = shared.git, shared.mirrors, shared.vault
        self._on_sent = on_sent
        self._ask = ask
        self._repository = folder / "repository.git"
        self._hooks = folder / "hooks"
        self._large = LargeFileTransfer(
            folder / "lfs", clone, files=shared.large, mirrors=self._mirrors, vault=self._vault
        )
        self._inspector = Inspector(
            self._git, self._repository, self._vault, clone.branch, clone.author
        )
        self._lock = asyncio.Lock()
        self._bringing = asyncio.Semaphore(_AT_ONCE)
        self.remote = AgentRemote(folder / FOLDER, str(clone.session), user)
        self.mirror = self._mirrors.path(clone.repository)
        self._is_open = True
        self._pushes: set[asyncio.Task[Any]] = set()
        self.last: PushVerdict | None = None
        """What became of the last push."""

    async def open(self) -> None:
        """Make the gate ready and listen."""
        await asyncio.to_thread(self._create_files)
        if not (self._repository / "HEAD").exists():
            await self._git.run(self._repository, "init", "--bare", "--quiet", "--template=")
        alternates = self._repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{self.mirror.resolve()}/objects\n")
        await asyncio.to_thread(self._keep_boundary)
        await self.remote.open(
            {
                "push": self._serve_push,
                "fetch": self._refresh,
                "objects": self._bring,
                lfs_relay.SOCKET: self._large.serve,
            }
        )

    def resume(self) -> None:
        """Accept pushes again."""
        self._is_open = True

    async def pause(self) -> None:
        """Refuse pushes for now; one that is under way is ended."""
        self._is_open = False
        for push in self._pushes:
            push.cancel()
        if self._pushes:
            await asyncio.wait(self._pushes, timeout=_CUT_SECONDS)

    async def close(self) -> None:
        """Stop listening; a push that is under way is ended."""
        await self.remote.close()

    @property
    def push_command(self) -> str:
        """The command that git calls to push to the gate."""
        return self.remote.command("push", is_partial=self._is_partial)

    def settings(self, *, with_large_files: bool) -> dict[str, str]:
        """Return the settings with which a clone's git and git-lfs reach the gate."""
        return self.remote.settings(is_partial=self._is_partial, with_large_files=with_large_files)

    @property
    def _is_partial(self) -> bool:
        return self._mirrors.is_partial(self._clone.repository)

    def rename(self, old: Repository, new: Repository) -> None:
        """Push to the new address of a repository from now on."""
        if self._clone.repository == old:
            self._clone = replace(self._clone, repository=new)

    async def conflicts(self, base: str, commit: str) -> tuple[str, ...]:
        """List the files in which a commit conflicts with the base branch."""
        clone, mirrors, here = self._clone, self._mirrors, self._repository
        onto = await mirrors.commit(clone.repository, f"refs/heads/{base}")
        if onto is None:
            return ()
        try:
            await mirrors.complete_merge(
                clone.repository, clone.agent, onto, commit, seen_from=here
            )
        except RepositoryError as error:
            logger.warning("cannot compute conflicts of %s: %s", clone.session, error)
            return ()
        return await conflicts(self._git, here, onto, commit)

    async def begin(self, commit: str) -> None:
        """Remember where a clone began: all earlier commits are known to the remote.

        When its base was rewritten, no branch of the mirror shows that any more.
        """
        await self._git.run(self._repository, "update-ref", _BEGUN, commit)

    def _keep_boundary(self) -> None:
        """Copy where the history of a shallow mirror ends, since its objects are borrowed.

        If the mirror is complete by now, the clone still ends there, so the gate keeps it too.
        """
        ends = self.mirror / "shallow"
        if ends.exists():
            shutil.copyfile(ends, self._repository / "shallow")

    def _create_files(self) -> None:
        for folder in (self._repository, self._hooks):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.remote.lay()
        remove_locks(self._repository)
        hook = self._hooks / "pre-receive"
        hook.write_text(HOOK)
        hook.chmod(0o755)

    async def _refresh(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Update the mirror before the agent reads it; an old one is better than none."""
        try:
            await self._mirrors.refresh(self._clone.repository, self._clone.agent)
        except BridgeError as error:
            self._say(writer, f"Could not update the mirror: {error}")
        finally:
            writer.close()

    async def _bring(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Fetch what the agent's git lacks: it sends only names of objects."""
        try:
            async with self._bringing:
                names = await read_names(reader)
                await self._mirrors.bring(self._clone.repository, self._clone.agent, names)
        except BridgeError as error:
            self._say(writer, f"Could not fetch missing objects: {error}")
        except (ConnectionError, TimeoutError):
            pass  # the agent's side has closed
        finally:
            writer.close()

    def _say(self, writer: asyncio.StreamWriter, words: str) -> None:
        """Tell an agent's git something, redacted: a remote may have said more than it may know."""
        writer.write(f"{self._vault.redact(words)}\n".encode())

    async def _serve_push(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        push = asyncio.current_task()
        assert push is not None
        self._pushes.add(push)
        try:
            async with self._lock:
                if self._is_open:
                    await asyncio.to_thread(self._keep_boundary)
                    await receive_push(
                        self._git, self._repository, self._hooks, reader, writer, self._answer
                    )
                else:
                    logger.warning("push refused: no turn runs")
                    writer.write(error_packet(wording.NO_TURN))
        except GitFailed as error:
            logger.warning("push aborted: %s", error)
        finally:
            self._pushes.discard(push)
            writer.close()

    async def _answer(self, question: list[str]) -> str:
        incoming = parse(question, self._repository)
        try:
            refusal = await self._judge(incoming)
        except (BridgeError, TimeoutError) as error:
            logger.warning("push failed: %s", error)
            refusal = f"The bridge could not push this: {str(error) or 'timed out'}"
        commit, refusal = incoming.updates[0].new, self._vault.redact(refusal)
        if refusal:
            logger.warning("push refused: %s", refusal)
        self.last = PushVerdict(commit, refusal)
        return refusal

    async def _judge(self, incoming: Incoming) -> str:
        """Decide on a push and, if it is allowed, send it; returns why not."""
        inspector, clone = self._inspector, self._clone
        if reason := inspector.objection(incoming.updates):
            return reason
        (update,) = incoming.updates
        known = await self._mirrors.commit(clone.repository, branch_ref(clone.branch))
        if reason := await inspector.refusal(incoming, known):
            return reason
        base = clone.base or await self._mirrors.default_branch(clone.repository)
        if reason := await inspector.forgery(incoming, clone.branch if known else base):
            return reason
        onto = await self._mirrors.commit(clone.repository, branch_ref(base))
        if reason := await self._check_guard(incoming, known or onto):
            return reason
        files = await inspector.workflows(incoming, (known, onto, _BEGUN))
        if files and (reason := await self._check_workflows(files)):
            return reason
        pointers = await inspector.pointers(incoming)
        if pointers and (reason := await self._large.send(pointers)):
            return reason
        if reason := await self._send(incoming, update.new, workflows=bool(files)):
            return reason
        await self._on_sent(update.new)
        return ""

    async def _check_guard(self, incoming: Incoming, before: str | None) -> str:
        """Ask a person about a push to a branch that others rely on; returns why not."""
        clone = self._clone
        if clone.branch == await self._mirrors.default_branch(clone.repository):
            reason = "it is the default branch"
        elif self._shared.guard is not None:
            reason = await self._shared.guard(clone.repository, clone.agent, clone.branch)
        else:
            reason = ""
        if not reason:
            return ""
        files = await self._inspector.files(incoming, before)
        if await self._ask(f"Push to {clone.branch}: {reason}", files):
            return ""
        return (
            f"Pushes to {clone.branch} need a person's approval, and this one did not get it: "
            f"{reason}."
        )

    async def _check_workflows(self, files: Sequence[str]) -> str:
        """Ask a person about changes to workflow files, if they can be pushed; returns why not."""
        clone, named = self._clone, ", ".join(map(plain, files))
        if self._shared.tokens is not None:
            reason = await self._shared.tokens.workflow_refusal(clone.repository, clone.agent)
            if reason:
                return f"Changes to workflow files cannot be pushed ({named}): {reason}"
        if await self._ask("Push changes to workflow files", files):
            return ""
        return f"Changes to workflow files need a person's approval and did not get it: {named}."

    async def _send(self, incoming: Incoming, commit: str, *, workflows: bool) -> str:
        """Push a commit to the remote; returns why the remote rejects it."""
        clone = self._clone
        access = await access_to(
            clone.repository,
            clone.agent,
            self._shared.tokens,
            self._shared.person,
            workflows=workflows,
        )
        # The branches of the remote may have moved on: only asking it tells what it has.
        access = replace(
            access,
            settings={**access.settings, "push.negotiate": "true"},
            environment={**access.environment, **incoming.view},
        )
        try:
            await self._git.run(
                self._repository,
                *("push", "--quiet", "--no-verify", "--no-signed"),
                *("--", clone.repository.url, f"{commit}:refs/heads/{clone.branch}"),
                access=access,
            )
        except GitFailed as error:
            if "non-fast-forward" in error.words or "fetch first" in error.words:
                await self._mirrors.refresh(clone.repository, clone.agent)
                return (
                    f"{clone.branch} has moved on since you fetched it. Run `git fetch origin`, "
                    f"merge or rebase onto `origin/{clone.branch}`, and push again."
                )
            if is_gone(error.words):
                gone = failure(clone.repository, error)
                return f"{gone} The work is kept in the clone."
            if self._is_partial and is_damage(error.words):
                return await self._advice_when_rewritten()
            return rejection(clone.branch, error.words)
        return ""

    async def _advice_when_rewritten(self) -> str:
        """Say what to do when a push includes history whose files are missing here."""
        base = await self._mirrors.default_branch(self._clone.repository)
        begun = await self._git.run(self._repository, "rev-parse", "--short", _BEGUN)
        return (
            f"{self._clone.branch} is based on commits that the remote no longer has, because its "
            "history was rewritten, and some of their files are missing here. Move your own "
            "commits to the new history: run `git fetch origin`, then "
            f"`git rebase --onto origin/{base} {begun.decode().strip()}`, and push again."
        )


async def conflicts(git: Git, repository: Path, onto: str, commit: str) -> tuple[str, ...]:
    """List the files in which two commits of a bare repository conflict."""
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, commit)
    try:
        # Status 1 means conflicts; any other, that this git cannot tell.
        listed = await git.run(repository, *words, accept=(0, 1))
    except GitFailed:
        return ()
    _tree, *files = listed.decode(errors="replace").split("\0")
    return tuple(dict.fromkeys(file for file in files if file))
