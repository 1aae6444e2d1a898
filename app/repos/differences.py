"""Shows what changed in a clone, in its agent's isolation: uncommitted, committed and pushed.

The agent's own index is never changed: files that it has not added go into a copy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Final

from app.core.workspaces import Changes, Diff, Scope
from app.errors import GitFailed
from app.repos.clone import QUICK_SECONDS
from app.repos.sandboxed_git import Inside

DIFF_BYTES: Final = 4 * 1024 * 1024
"""What the page reads of a diff: some 80,000 lines; of more it lists the files."""
_WORDS: Final = 300
"""How much of git's own words a person reads about a failure."""

# The agent's configuration must not change the form of what is parsed.
_FORM: Final = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--find-renames"),
)


async def changes(inside: Inside, *, start: str, sent: str) -> Sequence[Diff]:
    """Show what changed since a commit, of which `sent` was pushed; empty parts are left out."""
    parts = [_uncommitted(inside), _diff(inside, "committed", sent or start, "HEAD")]
    if sent:
        parts.append(_diff(inside, "pushed", start, sent))
    found = await asyncio.gather(*parts)
    return [diff for diff in found if diff.text or diff.stat or diff.problem]


async def count(inside: Inside, since: str) -> Changes | None:
    """Count the files and lines that changed since a commit; None if git cannot tell."""
    try:
        async with _with_new_files(inside) as more:
            counted = await _git(inside, "--numstat", since, more=more)
    except GitFailed:
        return None
    lines = [line.split("\t", 2) for line in counted.splitlines()]
    # A binary file has a dash in place of each number.
    added, removed = (sum(int(line[at]) for line in lines if line[at] != "-") for at in (0, 1))
    return Changes(len(lines), added, removed)


async def _uncommitted(inside: Inside) -> Diff:
    async with _with_new_files(inside) as more:
        return await _diff(inside, "uncommitted", "HEAD", more=more)


@asynccontextmanager
async def _with_new_files(inside: Inside) -> AsyncIterator[dict[str, str]]:
    """Make an index that includes files not added yet: the agent's own index is not changed."""
    index = f".git/index-{token_hex(4)}"
    try:
        yield await _make_index(inside, index)
    finally:
        with suppress(GitFailed):
            await inside.run("rm", "-f", "--", index, seconds=QUICK_SECONDS, limit=4096)


async def _make_index(inside: Inside, index: str) -> dict[str, str]:
    more = {"GIT_INDEX_FILE": index}
    try:
        # With its time: git looks into a file that changed no earlier than its index.
        await inside.run("cp", "-p", "--", ".git/index", index, seconds=QUICK_SECONDS, limit=4096)
        await inside.git(
            *("add", "--intent-to-add", "--all", "--", "."), seconds=QUICK_SECONDS, more=more
        )
    except GitFailed:
        return {}
    return more


async def _diff(
    inside: Inside, scope: Scope, *what: str, more: Mapping[str, str] | None = None
) -> Diff:
    try:
        return Diff(scope, text=await _git(inside, "--unified=3", *what, more=more))
    except GitFailed as error:
        try:
            return Diff(scope, stat=await _git(inside, "--numstat", "-z", *what, more=more))
        except GitFailed:
            return Diff(scope, problem=await _problem(inside) or error.words[-_WORDS:])


async def _problem(inside: Inside) -> str:
    """Say what is wrong with a clone; where there is none, git explains its options instead."""
    try:
        await inside.git("rev-parse", "--verify", "HEAD", seconds=QUICK_SECONDS)
    except GitFailed as error:
        return error.words.strip()[-_WORDS:]
    return ""


async def _git(inside: Inside, *what: str, more: Mapping[str, str] | None) -> str:
    written = await inside.git(
        *("diff", *_FORM, *what, "--"), seconds=QUICK_SECONDS, limit=DIFF_BYTES, more=more
    )
    return written.decode(errors="replace")
