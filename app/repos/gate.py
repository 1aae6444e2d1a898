"""The gate of a session: where everything is pushed to, looked at, and sent on by the bridge.

A gate is a bare repository that its agent never sees. All that the agent has is a folder, the door,
to read: a socket and a small relay, which git is told to call instead of `git receive-pack`. What
comes through the socket are the bytes of a push, and the bridge's own `git receive-pack` takes them
in with every object checked. So nothing that an agent writes (configuration, hooks, refs,
alternates, links) is ever read by a git in the bridge's shoes, and no ref of the agent's is
believed: what goes on to the remote is a commit by its name, out of the gate.

Before anything is kept, git calls the gate's hook, which hands the question to the bridge over two
named pipes and waits: its words come out of the agent's own `git push`. The commit is on the remote
before the gate says that it was taken; a crash in between repeats a push that changes nothing.

What a fetch wants comes through other sockets, and of that only names: the bridge brings the mirror
up to date, or has the named objects fetched into it, and git reads them there.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.children.process import Child
from app.core.workspaces import Clone, Repository
from app.errors import BridgeError, GitFailed, RepositoryError
from app.repos import lfs_relay
from app.repos.door import Door
from app.repos.git import Git
from app.repos.hook import HOOK, Pipes, pipes
from app.repos.inspection import PUSH_BYTES, Incoming, Inspector, parse
from app.repos.lfs import LargeFiles
from app.repos.lfs_door import LargeFileDoor
from app.repos.mirror import Mirrors
from app.repos.remote import Tokens, access_to, failure, is_damage, is_gone
from app.repos.repair import remove_locks
from app.vault import Vault

logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 65536
_AT_ONCE: Final = 8
"""How many gits of one agent are listened to at a time; others wait in line."""
_SILENCE_SECONDS: Final = 300.0
"""How long a push may say nothing: a large repository takes minutes to pack."""
_BEGUN: Final = "refs/agent-bridge/begun"
_NAMES_BYTES: Final = 8 * 1024**2
"""What a relay may ask for at once: it asks for a hundred thousand objects, as long as they are."""

Ask = Callable[[str], Awaitable[bool]]
"""Has a person decide something; True if it may be."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a push."""

    commit: str
    refusal: str = ""


class Gate:
    """One session's gate while its agent may push."""

    def __init__(
        self,
        folder: Path,
        clone: Clone,
        *,
        git: Git,
        mirrors: Mirrors,
        tokens: Tokens | None,
        vault: Vault,
        large: LargeFiles,
        person: dict[str, str],
        on_sent: Callable[[str], Awaitable[None]],
        ask: Ask,
    ) -> None:
        self._folder = folder
        self._clone = clone
        self._git = git
        self._mirrors = mirrors
        self._tokens = tokens
        self._vault = vault
        self._person = person
        self._on_sent = on_sent
        self._ask = ask
        self._repository = folder / "repository.git"
        self._hooks = folder / "hooks"
        self._large = LargeFileDoor(
            folder / "lfs", clone, files=large, mirrors=mirrors, vault=vault
        )
        self._inspector = Inspector(git, self._repository, vault, clone.branch)
        self._lock = asyncio.Lock()
        self._bringing = asyncio.Semaphore(_AT_ONCE)
        self.door = Door(folder / "door", str(clone.session))
        self.mirror = mirrors.path(clone.repository)
        self.last: Verdict | None = None
        """What became of the last push."""

    async def open(self) -> None:
        """Make the gate ready and listen."""
        await asyncio.to_thread(self._lay)
        if not (self._repository / "HEAD").exists():
            await self._git.run(self._repository, "init", "--bare", "--quiet", "--template=")
        alternates = self._repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{self.mirror.resolve()}/objects\n")
        await asyncio.to_thread(self._keep_boundary)
        await self.door.open(
            {
                "push": self._pushing,
                "fetch": self._refresh,
                "objects": self._bring,
                lfs_relay.SOCKET: self._large.serve,
            }
        )

    async def close(self) -> None:
        """Listen no longer; a push that is under way ends."""
        await self.door.close()

    @property
    def push_command(self) -> str:
        """The command by which a push reaches the gate."""
        return self.door.command("push", is_partial=self._is_partial)

    def settings(self, *, with_large_files: bool) -> dict[str, str]:
        """Tell the settings by which the git of a clone, and its git-lfs, reach the gate."""
        return self.door.settings(is_partial=self._is_partial, with_large_files=with_large_files)

    @property
    def _is_partial(self) -> bool:
        return self._mirrors.is_partial(self._clone.repository)

    def rename(self, old: Repository, new: Repository) -> None:
        """Send on to where a repository is from now on."""
        if self._clone.repository == old:
            self._clone = replace(self._clone, repository=new)

    async def conflicts(self, base: str, commit: str) -> tuple[str, ...]:
        """List the files in which a commit and the base branch cannot both be kept."""
        clone, mirrors, here = self._clone, self._mirrors, self._repository
        onto = await mirrors.commit(clone.repository, f"refs/heads/{base}")
        if onto is None:
            return ()
        try:
            await mirrors.complete_merge(
                clone.repository, clone.agent, onto, commit, seen_from=here
            )
        except RepositoryError as error:
            logger.warning("conflicts of %s cannot be told: %s", clone.session, error)
            return ()
        return await conflicts(self._git, here, onto, commit)

    async def begin(self, commit: str) -> None:
        """Keep in mind where a clone began: all before that is there, whatever becomes of branches.

        When its base was rewritten, no branch of the mirror says so any more.
        """
        await self._git.run(self._repository, "update-ref", _BEGUN, commit)

    def _keep_boundary(self) -> None:
        """Take over where the history of a shallow mirror ends, since its objects are borrowed.

        If the mirror is whole by now, the clone still ends where it did: so it stays here, too.
        """
        ends = self.mirror / "shallow"
        if ends.exists():
            shutil.copyfile(ends, self._repository / "shallow")

    def _lay(self) -> None:
        for folder in (self._repository, self._hooks):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.door.lay()
        remove_locks(self._repository)
        hook = self._hooks / "pre-receive"
        hook.write_text(HOOK)
        hook.chmod(0o755)

    async def _refresh(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Bring the mirror up to date before the agent reads it; an old one is better than none."""
        try:
            await self._mirrors.refresh(self._clone.repository, self._clone.agent)
        except BridgeError as error:
            self._say(writer, f"The mirror could not be brought up to date: {error}")
        finally:
            writer.close()

    async def _bring(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Fetch what the agent's git misses: all that comes from it are names of objects."""
        try:
            async with self._bringing:
                names = await _names(reader)
                await self._mirrors.bring(self._clone.repository, self._clone.agent, names)
        except BridgeError as error:
            self._say(writer, f"What is missing could not be fetched: {error}")
        except (ConnectionError, TimeoutError):
            pass  # nobody waits for it any more
        finally:
            writer.close()

    def _say(self, writer: asyncio.StreamWriter, words: str) -> None:
        """Tell an agent's git something: a remote may have said more than an agent may know."""
        writer.write(f"{self._vault.redact(words)}\n".encode())

    async def _pushing(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._lock:
                with pipes() as asking:
                    await self._receive(reader, writer, asking)
        except GitFailed as error:
            logger.warning("a push broke off: %s", error)
        finally:
            writer.close()

    async def _receive(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asking: Pipes
    ) -> None:
        """Let git take a push in; it asks through its hook whether it may be kept."""
        settings = {
            "core.hooksPath": str(self._hooks),
            "receive.maxInputSize": str(PUSH_BYTES),
            "receive.denyDeletes": "true",
            "receive.autogc": "false",
            "receive.unpackLimit": "1",
        }
        more = {"AGENT_BRIDGE_GATE": str(asking.folder)}
        here = str(self._repository)
        await asyncio.to_thread(self._keep_boundary)
        async with (
            self._git.started(
                self._repository, "receive-pack", here, settings=settings, more=more
            ) as child,
            asyncio.TaskGroup() as group,
        ):
            helpers = (
                group.create_task(_take(reader, child)),
                group.create_task(self._answer(asking)),
            )
            await _give(child, writer)
            for helper in helpers:
                helper.cancel()

    async def _answer(self, asking: Pipes) -> None:
        incoming = parse(await asking.question(), self._repository)
        try:
            refusal = await self._judge(incoming)
        except (BridgeError, TimeoutError) as error:
            logger.warning("a push could not be sent on: %s", error)
            refusal = self._told(error)
        commit, refusal = incoming.updates[0].new, self._vault.redact(refusal)
        self.last = Verdict(commit, refusal)
        asking.answer(refusal)

    async def _judge(self, incoming: Incoming) -> str:
        """Decide on a push and, if it may go on, send it; returns why not."""
        inspector, clone = self._inspector, self._clone
        if reason := inspector.objection(incoming.updates):
            return reason
        known = await self._mirrors.commit(clone.repository, f"refs/heads/{clone.branch}")
        if reason := await inspector.refusal(incoming, known):
            return reason
        if files := await inspector.workflows(incoming):
            named = ", ".join(files)
            if not await self._ask(f"Push changes of workflow files: {named}"):
                return f"Workflow files are not pushed unless somebody allows it: {named}."
        (update,) = incoming.updates
        pointers = await inspector.pointers(incoming)
        if pointers and (reason := await self._large.send(pointers)):
            return reason
        if reason := await self._send(incoming, update.new):
            return reason
        await self._on_sent(update.new)
        return ""

    async def _send(self, incoming: Incoming, commit: str) -> str:
        """Push a commit to the remote; returns why the remote does not take it."""
        clone = self._clone
        access = await access_to(clone.repository, clone.agent, self._tokens, self._person)
        # The branches of the remote may have moved on: only by asking is known what it has.
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
                    f"{clone.branch} has moved on since you fetched it. `git fetch origin`, merge "
                    f"or rebase onto `origin/{clone.branch}`, and push again."
                )
            if is_gone(error.words):
                gone = failure(clone.repository, error)
                return f"{gone} What was done is kept in the clone."
            if self._is_partial and is_damage(error.words):
                return await self._advice_when_rewritten()
            return f"The remote did not take it: {_remote_words(error.words)}"
        return ""

    async def _advice_when_rewritten(self) -> str:
        """Say what to do when a push would bring history along of which files are missing."""
        base = await self._mirrors.default_branch(self._clone.repository)
        begun = await self._git.run(self._repository, "rev-parse", "--short", _BEGUN)
        return (
            f"{self._clone.branch} stands on commits that the remote does not have any more, since "
            "its history was rewritten, and not all of their files are here. Put your own commits "
            "onto what is there now: `git fetch origin`, then "
            f"`git rebase --onto origin/{base} {begun.decode().strip()}`, and push again."
        )

    def _told(self, error: BaseException) -> str:
        words = str(error) or "it took too long"
        return f"The bridge could not send this on: {words}"


async def _names(reader: asyncio.StreamReader) -> list[str]:
    """Read names of objects to the end.

    Raises:
        RepositoryError: there are more than anybody needs.
    """
    read = bytearray()
    while data := await asyncio.wait_for(reader.read(_CHUNK_BYTES), _SILENCE_SECONDS):
        read += data
        if len(read) > _NAMES_BYTES:
            raise RepositoryError("that is too much at once.")
    return read.decode("ascii", "replace").split()


async def _take(reader: asyncio.StreamReader, child: Child) -> None:
    """Carry what the agent's git says to the bridge's."""
    try:
        while data := await asyncio.wait_for(reader.read(_CHUNK_BYTES), _SILENCE_SECONDS):
            child.write(data)
            await child.drain()
    except (BrokenPipeError, ConnectionError, TimeoutError):
        pass  # one of the two has said all that it wanted to
    child.close_input()


async def _give(child: Child, writer: asyncio.StreamWriter) -> None:
    """Carry what the bridge's git answers to the agent's."""
    while data := await child.stdout.read(_CHUNK_BYTES):
        if not writer.is_closing():
            writer.write(data)
            try:
                await asyncio.wait_for(writer.drain(), _SILENCE_SECONDS)
            except (ConnectionError, TimeoutError):
                writer.transport.abort()  # nobody listens; git still says all that it wants to


async def conflicts(git: Git, repository: Path, onto: str, commit: str) -> tuple[str, ...]:
    """List the files in which two commits of a bare repository cannot both be kept."""
    async with git.started(
        repository,
        *("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"),
        *(onto, commit),
    ) as child:
        child.close_input()
        listed = bytearray()
        while data := await child.stdout.read(_CHUNK_BYTES):
            listed += data
        # Status 1 says that there are conflicts; others, that this git cannot tell.
        if await child.wait() != 1:
            return ()
    _tree, *files = bytes(listed).decode(errors="replace").split("\0")
    return tuple(dict.fromkeys(file for file in files if file))


def _remote_words(words: str) -> str:
    """Pick out of a failed push what the remote itself said."""
    said = [
        line.removeprefix("remote:").strip() for line in words.splitlines() if "remote:" in line
    ]
    rejected = [
        line.strip() for line in words.splitlines() if "rejected" in line or "fatal" in line
    ]
    return " ".join(said or rejected or [words.strip()])[:1000]
