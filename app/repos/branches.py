"""Compares branches in the mirror, and brings clones to commits that others pushed.

What is read comes from the mirror alone; what changes in a clone runs in its agent's isolation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from app.errors import GitFailed
from app.model.branch_names import branch_ref
from app.model.workspaces import Clone, Compared, Followed, Repository
from app.repos.clone import CHECKOUT_SECONDS, QUICK_SECONDS
from app.repos.differences import DIFF_BYTES, FORM
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import Inside

LOG_COMMITS: Final = 30
"""New commits that an agent is told of; it can list the rest in its clone."""


async def compare(
    git: Git, mirrors: Mirrors, repository: Repository, agent: str, head: str, base: str
) -> Compared | None:
    """Show what a commit or a ref changes since it left the base; None if either is missing.

    Raises:
        RepositoryError: the remote cannot be reached.
    """
    is_elsewhere = head.startswith("refs/") and not head.startswith(branch_ref(""))
    mirror = await mirrors.refresh(repository, agent, *((head,) if is_elsewhere else ()))
    base = base or await mirrors.default_branch(repository)
    commit = await mirrors.commit(repository, head)
    onto = await mirrors.commit(repository, branch_ref(base))
    if commit is None or onto is None:
        return None
    await mirrors.complete_merge(repository, agent, onto, commit, seen_from=mirror)
    return Compared(commit, base, await _diff(git, mirror, onto, commit))


async def _diff(git: Git, mirror: Path, onto: str, commit: str) -> str:
    """Write a diff; of one that is too long the names of its files."""
    for form in ("--unified=3", "--stat=120"):
        try:
            written = await git.run(
                mirror, "diff", *FORM, form, f"{onto}...{commit}", "--", limit=DIFF_BYTES
            )
        except GitFailed:
            continue
        return written.decode(errors="replace")
    return ""


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
