"""Shows what changed in a clone or a folder, in its agent's isolation, by how far it got.

Looking changes nothing: files that are not added yet go into a copy of the index, next to which git
keeps what it has to write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
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

# With its time: git looks into a file that changed no earlier than its index.
_COPY: Final = """\
path() { git "$@" rev-parse --path-format=absolute --git-path "$name"; }
name=index; mkdir -p -- "$0.objects"; cp -p -- "$(path "$@")" "$0"
name=objects; path "$@"
"""

# The agent's configuration must not change the form of what is parsed.
FORM: Final = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--find-renames"),
)


async def changes(inside: Inside, *, start: str, sent: str) -> Sequence[Diff]:
    """Show what changed since a commit, of which `sent` was pushed; empty parts are left out."""
    parts = [
        _uncommitted(inside, _index_of(inside)),
        _diff(inside, "committed", sent or start, "HEAD"),
    ]
    if sent:
        parts.append(_diff(inside, "pushed", start, sent))
    found = await asyncio.gather(*parts)
    return [diff for diff in found if diff.text or diff.stat or diff.problem]


async def changes_in_place(inside: Inside, folder: Path) -> Sequence[Diff]:
    """Show what is uncommitted in a person's folder, which git only reads."""
    index = str(inside.workspace / f".index-{token_hex(4)}")
    found = await _uncommitted(inside, index, ("-C", str(folder), "-c", "safe.directory=*"))
    return [found] if found.text or found.stat or found.problem else []


async def count(inside: Inside, since: str) -> Changes | None:
    """Count the files and lines that changed since a commit; None if git cannot tell."""
    try:
        async with _with_new_files(inside, _index_of(inside)) as more:
            counted = await inside.git(
                *("diff", *FORM, "--numstat", since, "--"),
                seconds=QUICK_SECONDS,
                limit=DIFF_BYTES,
                more=more,
            )
    except GitFailed:
        return None
    lines = [line.split(b"\t", 2) for line in counted.splitlines()]
    # A binary file has a dash in place of each number.
    added, removed = (sum(int(line[at]) for line in lines if line[at] != b"-") for at in (0, 1))
    return Changes(len(lines), added, removed)


def _index_of(inside: Inside) -> str:
    return str(inside.workspace / ".git" / f"index-{token_hex(4)}")


async def _uncommitted(inside: Inside, index: str, where: Sequence[str] = ()) -> Diff:
    async with _with_new_files(inside, index, where) as more:
        return await _diff(inside, "uncommitted", "HEAD", more=more, where=where)


@asynccontextmanager
async def _with_new_files(
    inside: Inside, index: str, where: Sequence[str] = ()
) -> AsyncIterator[dict[str, str]]:
    """Make an index that includes files not added yet: the one that is there is not changed."""
    try:
        yield await _make_index(inside, index, where)
    finally:
        with suppress(GitFailed):
            await inside.run(
                *("rm", "-rf", "--", index, f"{index}.objects"), seconds=QUICK_SECONDS, limit=4096
            )


async def _make_index(inside: Inside, index: str, where: Sequence[str]) -> dict[str, str]:
    try:
        _, objects, _ = await inside.run(
            *("sh", "-c", _COPY, index, *where), seconds=QUICK_SECONDS, limit=65536, name="cp"
        )
        more = {
            "GIT_INDEX_FILE": index,
            "GIT_OBJECT_DIRECTORY": f"{index}.objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects.decode(errors="surrogateescape").strip(),
        }
        await inside.git(
            *(*where, "add", "--intent-to-add", "--all", "--", "."),
            seconds=QUICK_SECONDS,
            more=more,
        )
    except GitFailed:
        return {}
    return more


async def _diff(
    inside: Inside,
    scope: Scope,
    *what: str,
    more: Mapping[str, str] | None = None,
    where: Sequence[str] = (),
) -> Diff:
    async def shown(*form: str) -> str:
        written = await inside.git(
            *(*where, "diff", *FORM, *form, *what, "--", "."),
            seconds=QUICK_SECONDS,
            limit=DIFF_BYTES,
            more=more,
        )
        return written.decode(errors="replace")

    try:
        return Diff(scope, text=await shown("--unified=3"))
    except GitFailed as error:
        try:
            return Diff(scope, stat=await shown("--numstat", "-z"))
        except GitFailed:
            return Diff(scope, problem=await _problem(inside, where) or error.words[-_WORDS:])


async def _problem(inside: Inside, where: Sequence[str]) -> str:
    """Say what is wrong with a clone; where there is none, git explains its options instead."""
    try:
        await inside.git(*where, "rev-parse", "--verify", "HEAD", seconds=QUICK_SECONDS)
    except GitFailed as error:
        return error.words.strip()[-_WORDS:]
    return ""
