"""Makes, cleans up, commits and updates a session's clone, all in its agent's isolation.

A clone borrows its objects from the mirror (`git clone --shared`) and is the agent's own in every
other way. Worktrees are not used: an agent's `git config` would change what all sessions share.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from app.descent import remove
from app.errors import GitFailed, RepositoryError
from app.model.proposals import branch_ref
from app.model.workspaces import Clone, Followed, Gathered
from app.repos.git import COMMIT, Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import Inside
from app.repos.wording import SESSION_TRAILER

CHECKOUT_SECONDS: Final = 1800.0
"""How long a checkout may take: large files come over the network."""
QUICK_SECONDS: Final = 120.0
"""How long inspecting a clone may take; the status of fifty thousand files takes one second."""
LOG_COMMITS: Final = 30
"""New commits that an agent is told of; it can list the rest in its clone."""
_UNFINISHED: Final = re.compile(rb"(?m)^(?:u |# branch\.head \(detached\)$)")
_LENDERS: Final = ".git/objects/info/alternates"
"""Names the folders from which a clone borrows objects."""
_TRAILER_HOOK: Final = """\
#!/bin/sh
# Says in every commit which session made it.
exec git interpret-trailers --in-place --if-exists doNothing --trailer '{key}: {session}' "$1"
"""


def write_template(folder: Path, clone: Clone) -> None:
    """Write the template of a new clone: the hook that names the session in its commits."""
    hook = folder / "hooks" / "prepare-commit-msg"
    hook.parent.mkdir(parents=True, exist_ok=True)
    session = re.sub(r"[^\w:./#@-]", "_", str(clone.session))
    hook.write_text(_TRAILER_HOOK.format(key=SESSION_TRAILER, session=session))
    hook.chmod(0o755)


async def make(
    inside: Inside,
    clone: Clone,
    *,
    mirror: Path,
    template: Path,
    start: str,
    remote: Mapping[str, str],
) -> None:
    """Make a clone and check out what its agent works on; an earlier attempt is removed.

    Raises:
        RepositoryError: it cannot be made.
    """
    await asyncio.to_thread(clear, clone.folder)
    own = {
        **_identity(clone),
        "push.default": "current",
        # Only its agent works in it, and what it borrows must never be packed away.
        "gc.auto": "0",
        **remote,
    }
    settings = [word for key, value in own.items() for word in ("-c", f"{key}={value}")]
    await inside.git(
        *("clone", "--quiet", "--shared", "--no-checkout", f"--template={template}"),
        # A shallow mirror is copied, not shared: with the plain program, since the mirror has just
        # been updated.
        "--upload-pack=git-upload-pack",
        *(*settings, "--", str(mirror), "."),
    )
    match clone.way:
        case "branch" | "existing":
            how: tuple[str, ...] = ("--no-track", "-B", clone.branch)
        case "detached":
            how = ("--detach",)
    await inside.git("checkout", "--quiet", *how, start, "--", seconds=CHECKOUT_SECONDS)


def _identity(clone: Clone) -> dict[str, str]:
    return {"user.name": clone.author.name, "user.email": clone.author.email}


async def tidy(inside: Inside, clone: Clone, mirror: Path, remote: Mapping[str, str]) -> None:
    """Remove the locks of a git that died with its agent, and set what may have changed.

    No process works in the clone now. The agent's name on a platform is known later than the first
    clone, and may change; gate and mirror are elsewhere if another machine made the clone.
    """
    settings = {**_identity(clone), **remote, "remote.origin.url": str(mirror)}
    changes = [("git", "config", "--replace-all", *each) for each in settings.items()]
    # Where its agent broke the configuration, the gate says what is wrong with its commits.
    words = (("find", ".git", "-name", "*.lock", "-type", "f", "-delete"), *changes)
    lender = shlex.quote(f"{mirror}/objects")
    script = (
        *map(shlex.join, words),
        f"[ ! -f {_LENDERS} ] || grep -qxF {lender} {_LENDERS} || echo {lender} > {_LENDERS}",
    )
    await inside.run("sh", "-c", "; ".join(script), seconds=QUICK_SECONDS, limit=4096)


async def gather(inside: Inside, clone: Clone, message: str) -> Gathered:
    """Commit what was left uncommitted, and return the state of the clone.

    Raises:
        RepositoryError: git cannot do it there.
    """
    status = await inside.git("status", "--porcelain=v2", "--branch", seconds=QUICK_SECONDS)
    if problem := _problem(status):
        return Gathered(await head(inside), problem)
    if any(not line.startswith(b"#") for line in status.splitlines()):
        await inside.git("add", "--all", "--", ".")
        # Sometimes there is nothing to commit: only the way that files are stored changed.
        staged, _, _ = await inside.run(
            *("git", "diff", "--cached", "--quiet", "--no-ext-diff"),
            seconds=QUICK_SECONDS,
            limit=4096,
        )
        if staged:
            author = f"--author={clone.author}"
            await inside.git(
                *("commit", "--quiet", "--no-verify", author, "-m", message),
                more={
                    "GIT_COMMITTER_NAME": clone.author.name,
                    "GIT_COMMITTER_EMAIL": clone.author.email,
                },
            )
    return Gathered(await head(inside))


def _problem(status: bytes) -> str:
    found = _UNFINISHED.search(status)
    if found is None:
        return ""
    if found[0].startswith(b"u"):
        return "its clone has unresolved conflicts"
    return "its clone is on no branch (an unfinished rebase, or a detached commit)"


async def head(inside: Inside) -> str:
    """Return the commit that is checked out.

    Raises:
        RepositoryError: there is none.
    """
    found = (await inside.git("rev-parse", "HEAD^{commit}", seconds=QUICK_SECONDS)).decode(
        "ascii", "replace"
    )
    commit = found.strip()
    if not COMMIT.fullmatch(commit):
        raise RepositoryError("Cannot tell which commit is checked out in the clone.")
    return commit


async def unshipped(inside: Inside, *, sent: str, start: str) -> str:
    """Say what a clone holds that is nowhere else; empty if it can be deleted."""
    try:
        status = await inside.git("status", "--porcelain", "-z", seconds=QUICK_SECONDS)
        known = [commit for commit in (sent, start) if commit]
        only_here = await inside.git(
            *("rev-list", "--max-count=1000", "--branches", "HEAD", "--not", "--remotes"),
            *known,
            seconds=QUICK_SECONDS,
        )
        stashed = await inside.git("stash", "list", seconds=QUICK_SECONDS)
    except GitFailed as error:
        return f"git cannot read it ({error.words.strip()[-200:]})"
    changes, commits = status.count(b"\0"), len(only_here.split())
    held = (
        (changes, "uncommitted change"),
        (commits, "commit"),
        (len(stashed.splitlines()), "stash"),
    )
    return ", ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in held if count)


def clear(folder: Path) -> None:
    """Empty a folder of what an agent or a crash left in it; links are not followed."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in folder.iterdir():
        remove(entry)


async def check_out(inside: Inside, commit: str) -> None:
    """Check out another commit in a clone for reading.

    Raises:
        RepositoryError: git cannot do it there.
    """
    await inside.git(
        *("checkout", "--quiet", "--force", "--detach", commit, "--"), seconds=CHECKOUT_SECONDS
    )


async def follow(inside: Inside, git: Git, mirrors: Mirrors, clone: Clone, commit: str) -> Followed:
    """Bring the branch of a clone up to the remote, unless it has this commit already.

    Raises:
        RepositoryError: the remote cannot be reached, or has too many files.
    """
    lacks, _, _ = await inside.run(
        *("git", "merge-base", "--is-ancestor", commit, "HEAD"), seconds=QUICK_SECONDS, limit=4096
    )
    if not lacks:
        return Followed("current")
    repository = clone.repository
    mirror = await mirrors.refresh(repository, clone.agent)
    last = await mirrors.commit(repository, branch_ref(clone.branch))
    if last is None:
        return Followed("current")
    await mirrors.check_size(repository, last)
    await mirrors.complete(repository, clone.agent, last)
    try:
        before = (await inside.git("rev-parse", "HEAD", seconds=QUICK_SECONDS)).decode().strip()
        await inside.git("merge", "--quiet", "--ff-only", last, seconds=CHECKOUT_SECONDS)
    except GitFailed:
        return Followed("behind", last)
    log = await git.run(
        mirror, "log", f"--max-count={LOG_COMMITS}", "--format=%h %an: %s", f"{before}..{last}"
    )
    return Followed("updated", last, log.decode(errors="replace").strip())
