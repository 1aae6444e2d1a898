"""Inspects a push and says why it is refused, in words for the agent.

Only what is new to the remote is inspected: everything on a branch or a tag of the mirror or of the
gate is already there. What the mirror has from forks is not.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.process import Child
from app.errors import GitFailed
from app.model.workspaces import Author
from app.repos.git import Git
from app.repos.lfs import POINTER_BYTES, Pointer, is_used, parse_pointer
from app.repos.trees import find_excess
from app.vault import Vault

PUSH_BYTES: Final = 256 * 1024**2
"""The largest push, packed; GitHub accepts 2 GiB, which is more than people review."""
FILE_BYTES: Final = 50 * 1024**2
"""The largest file: GitHub warns above this size and refuses twice as much."""
_NEW: Final = ("--not", "--alternate-refs")
_ZERO: Final = frozenset("0")
_NAMED: Final = 5
"""How many files a reason names: enough to find the rest."""
_SCAN_SECONDS: Final = 600.0
"""How long reading all new objects may take."""


@dataclass(frozen=True, slots=True)
class Update:
    """One ref that a push wants to change."""

    old: str
    new: str
    ref: str

    @property
    def creates(self) -> bool:
        """Whether the ref is new."""
        return set(self.old) <= _ZERO

    @property
    def deletes(self) -> bool:
        """Whether the ref is deleted."""
        return set(self.new) <= _ZERO


@dataclass(frozen=True, slots=True)
class Incoming:
    """A push that waits for its verdict: its objects are kept apart from those of the gate."""

    updates: tuple[Update, ...]
    view: Mapping[str, str]
    """The environment in which git sees them."""


def parse(question: Sequence[str], gate: Path) -> Incoming:
    """Read what the hook of a gate asks: where the objects are, then a line per ref."""
    quarantine, *lines = question
    updates = tuple(Update(*line.split(" ", 2)) for line in lines)
    view = {
        "GIT_OBJECT_DIRECTORY": quarantine,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(gate / "objects"),
    }
    return Incoming(updates, view)


@dataclass(frozen=True, slots=True)
class Inspector:
    """Inspects pushes into one gate."""

    git: Git
    gate: Path
    vault: Vault
    branch: str
    """The only branch that may be pushed to; none for a session that only reads."""
    author: Author
    """Whose commits may be new."""
    file_bytes: int = FILE_BYTES

    def objection(self, updates: Sequence[Update]) -> str:
        """Say what is wrong with the refs of a push, before its content is inspected."""
        if not self.branch:
            return "This session is read-only and has no branch to push to."
        foreign = [update.ref for update in updates if update.ref != f"refs/heads/{self.branch}"]
        if foreign:
            named = ", ".join(plain(ref) for ref in foreign[:_NAMED])
            return f"This session can push only to {self.branch}, not to {named}."
        if any(update.deletes for update in updates):
            return f"{self.branch} cannot be deleted."
        return "" if len(updates) == 1 else f"Push one commit to {self.branch} at a time."

    async def refusal(self, incoming: Incoming, known: str | None) -> str:
        """Say why a push is refused; empty if it is not. `known` is the branch on the remote.

        Raises:
            GitFailed: it cannot be inspected.
        """
        for update in incoming.updates:
            for before in {update.old, known} - {None}:
                if (
                    before
                    and set(before) - _ZERO
                    and not await self._follows(incoming, before, update)
                ):
                    return (
                        f"This push would overwrite commits on {self.branch}. Force pushes are not "
                        "allowed. Run `git fetch origin`, merge or rebase onto "
                        f"`origin/{self.branch}`, and push again."
                    )
            objects = await self._objects(incoming, update.new)
            if reason := (
                await self._too_large(incoming, objects)
                or await self._too_many(incoming, update.new)
                or await self._secret(incoming, objects)
            ):
                return reason
        return ""

    async def forgery(self, incoming: Incoming, base: str) -> str:
        """Say which new commit speaks for someone else, and how to fix it.

        It does so as its author or committer, or by a line such as `Signed-off-by:`. Commits of
        others are accepted only if the remote already has them.
        """
        own = (_as_in_commits(self.author.name), _as_in_commits(self.author.email))
        for update in incoming.updates:
            listed = await self._run(incoming, "log", "-z", _WHO, update.new, *_NEW)
            fields = iter(listed.decode(errors="replace").split("\0")[:-1])
            for commit, *who, message in zip(*[fields] * _FIELDS, strict=True):
                if vow := next(_foreign_vows(message, own), ""):
                    return _VOWED.format(commit=commit[:12], vow=plain(vow), own=self.author)
                for role, *names in (("author", *who[:2]), ("committer", *who[2:])):
                    if tuple(map(_as_in_commits, names)) != own:
                        stranger = plain(f"{names[0]} <{names[1]}>")
                        return _FORGED.format(
                            commit=commit[:12],
                            role=role,
                            stranger=stranger,
                            own=self.author,
                            name=shlex.quote(self.author.name),
                            email=shlex.quote(self.author.email),
                            base=base,
                        )
        return ""

    async def workflows(self, incoming: Incoming, known: Sequence[str | None]) -> list[str]:
        """List the workflow files that a push changes: they run with their own permissions.

        These are all files that new commits touch, and all that differ from every known commit:
        what a merge or an old commit brings in is a change of the branch, too.
        """
        touched: dict[str, None] = {}
        for update in incoming.updates:
            before = (*known, None if update.creates else update.old)
            changes = [await self._changed(incoming, one, update.new) for one in before if one]
            touched |= dict.fromkeys(sorted(set.intersection(*changes)))
            # For a merge only what differs from all parents: the rest is already in one of them.
            listed = await self._run(
                incoming,
                *("log", "-z", "--format=", "--name-only", "--no-renames", "-c", "--root"),
                *(update.new, *_NEW),
            )
            touched |= dict.fromkeys(_workflows(listed.replace(b"\n", b"\0")))
        return list(touched)

    async def files(self, incoming: Incoming, before: str | None) -> list[str]:
        """List the files that a push changes since a commit, else all that it brings."""
        (update,) = incoming.updates
        if before is not None:
            return list(_paths(await self._differing(incoming, before, update.new)))
        listed = await self._run(incoming, "ls-tree", "-r", "-z", "--name-only", update.new)
        return list(_paths(listed))

    async def _changed(self, incoming: Incoming, before: str, after: str) -> set[str]:
        """List the workflow files that differ between two commits."""
        return set(_workflows(await self._differing(incoming, before, after)))

    async def _differing(self, incoming: Incoming, before: str, after: str) -> bytes:
        return await self._run(
            incoming, *("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        )

    async def pointers(self, incoming: Incoming) -> dict[Pointer, str]:
        """List the large files that new commits point to, each with one of its paths."""
        found: dict[Pointer, str] = {}
        for update in incoming.updates:
            if not await is_used(self.git, self.gate, update.new, incoming.view):
                continue
            objects = await self._objects(incoming, update.new)
            sizes = await self._sizes(incoming, objects)
            small = {name: objects[name] for name, size in sizes.items() if size < POINTER_BYTES}
            async for name, kind, content in self._contents(incoming, small):
                pointer = parse_pointer(content) if kind == "blob" else None
                if pointer is not None:
                    found[pointer] = objects[name]
        return found

    async def _follows(self, incoming: Incoming, before: str, update: Update) -> bool:
        try:
            base = await self._run(incoming, "merge-base", before, update.new)
        except GitFailed:
            return False
        return base.decode().strip() == before

    async def _objects(self, incoming: Incoming, new: str) -> dict[str, str]:
        """List what is new, by name of the object, with a path where there is one."""
        listed = await self._run(incoming, "rev-list", "--objects", new, *_NEW)
        lines = (line.partition(" ") for line in listed.decode(errors="replace").splitlines())
        return {name: path for name, _, path in lines}

    async def _too_large(self, incoming: Incoming, objects: Mapping[str, str]) -> str:
        for name, size in (await self._sizes(incoming, objects)).items():
            if size > self.file_bytes:
                return (
                    f"{plain(objects.get(name) or name)} has {size // 1024**2} MiB; the limit is "
                    f"{self.file_bytes // 1024**2} MiB per file. Remove it from every commit, or "
                    "store it with Git LFS."
                )
        return ""

    async def _too_many(self, incoming: Incoming, new: str) -> str:
        commits = (await self._run(incoming, "rev-list", new, *_NEW)).decode().split()
        return await find_excess(self.git, self.gate, commits, view=incoming.view)

    async def _sizes(self, incoming: Incoming, objects: Mapping[str, str]) -> dict[str, int]:
        listed = await self._run(
            incoming,
            *("cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"),
            given="".join(f"{name}\n" for name in objects).encode(),
        )
        lines = (line.partition(" ") for line in listed.decode().splitlines())
        return {name: int(size) for name, _, size in lines if size.isdigit()}

    async def _secret(self, incoming: Incoming, objects: Mapping[str, str]) -> str:
        paths = "\n".join(objects.values())
        if await asyncio.to_thread(self.vault.contains, paths):
            return _HOLDS_ONE.format(where="A file name")
        async with asyncio.timeout(_SCAN_SECONDS):
            async for name, kind, content in self._contents(incoming, objects):
                if kind != "tree" and await asyncio.to_thread(holds_secret, self.vault, content):
                    where = plain(objects.get(name, "")) or f"The message of {kind} {name[:12]}"
                    return _HOLDS_ONE.format(where=where)
        return ""

    async def _contents(
        self, incoming: Incoming, objects: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, str, bytes]]:
        """Read objects one after another."""
        async with self.git.start(
            self.gate, "cat-file", "--batch", "--buffer", more=incoming.view
        ) as child:
            child.write("".join(f"{name}\n" for name in objects).encode())
            child.close_input()
            reading = _Reading(child)
            while line := await reading.line():
                words = line.decode().split()
                if len(words) != 3 or not words[2].isdigit():
                    raise GitFailed("git cat-file", line.decode(errors="replace"))
                content = await reading.exactly(int(words[2]) + 1)
                yield words[0], words[1], content[:-1]

    async def _run(self, incoming: Incoming, *arguments: str, given: bytes = b"") -> bytes:
        return await self.git.run(self.gate, *arguments, more=incoming.view, given=given)


class _Reading:
    """Reads lines and lengths from what a child writes."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._rest = bytearray()

    async def line(self) -> bytes:
        """Read one line; empty at the end of the output."""
        while (end := self._rest.find(b"\n")) < 0:
            if not await self._more():
                return b""
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    async def exactly(self, count: int) -> bytes:
        """Read exactly this many bytes.

        Raises:
            GitFailed: there are not that many.
        """
        while len(self._rest) < count:
            if not await self._more():
                raise GitFailed("git cat-file", "the object is truncated")
        taken = bytes(self._rest[:count])
        del self._rest[:count]
        return taken

    async def _more(self) -> bool:
        data = await self._child.stdout.read(1024**2)
        self._rest += data
        return bool(data)


_HOLDS_ONE: Final = (
    "{where} holds a secret that the bridge knows, so nothing was pushed. Remove it from every "
    "commit (`git commit --amend` or `git rebase`), not only from the last one."
)


def holds_secret(vault: Vault, content: bytes) -> bool:
    """Tell whether bytes hold a secret that the bridge knows."""
    text = content.decode(errors="replace")
    # Wide characters have a zero between any two letters.
    return vault.contains(text) or ("\0" in text and vault.contains(text.replace("\0", "")))


_WHO: Final = "--format=%H%x00%an%x00%ae%x00%cn%x00%ce%x00%B"
_FIELDS: Final = 6
_VOW: Final = re.compile(
    r"(?:signed-off|reviewed|acked|approved|tested)-by\s*:\s*([^<]*)<?([^>]*)", re.IGNORECASE
)
"""A line by which a person vouches for a change; `Co-authored-by:` only gives credit."""
_VOWED: Final = (
    "The message of commit {commit} says `{vow}`, and only a person can say that about themselves. "
    "Commits that are new to the remote may say so only for {own}. Remove the line "
    "(`git commit --amend`, or `git rebase -i` for an earlier commit), and push again. To credit "
    "others, use `Co-authored-by:`."
)
_FORGED: Final = (
    "Commit {commit} names {stranger} as its {role}. Commits that are new to the remote must name "
    "{own} as author and committer. Run `git config user.name {name}` and `git config user.email "
    "{email}`. Then run `git commit --amend --no-edit --reset-author` to fix the last commit, or "
    "`git rebase -r --exec 'git commit --amend --no-edit --reset-author' origin/{base}` to fix all "
    "of them, and push again. To credit others, use `Co-authored-by:` in the message."
)


def _as_in_commits(name: str) -> str:
    """Write a name or an address as git does: without delimiters, and stripped at both ends."""
    return re.sub(r"[<>\n]", "", name).strip(".,:;\"\\' \t\r")


def _foreign_vows(message: str, own: tuple[str, str]) -> Iterator[str]:
    """Find the lines of a message that speak for someone else."""
    for line in message.splitlines():
        said = _VOW.match(line)
        if said is not None and tuple(map(_as_in_commits, said.groups())) != own:
            yield line


def _workflows(listed: bytes) -> Iterator[str]:
    return (path for path in _paths(listed) if _is_workflow(path))


def _paths(listed: bytes) -> Iterator[str]:
    return filter(None, listed.decode(errors="replace").split("\0"))


def _is_workflow(path: str) -> bool:
    plain = path.lower()
    return plain in {".github", ".github/workflows"} or plain.startswith(".github/workflows/")


def plain(text: str) -> str:
    """Make a name from outside safe to show: one line, no terminal control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]
