"""Shows what changed in a clone or a folder, in its agent's isolation, by how far it got.

Looking changes nothing, and obeys nothing that an agent can write: see `viewer`. What comes from
inside is untrusted.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from app.errors import GitFailed
from app.model.proposals import branch_ref
from app.model.workspaces import Changes, Compared, Diff, Hidden, Repository, Scope
from app.repos import viewer
from app.repos.clone import QUICK_SECONDS
from app.repos.git import Git
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import Inside

DIFF_BYTES: Final = 4 * 1024 * 1024
"""What the page reads of a diff: some 80,000 lines; of more it lists the files."""
_SAID_BYTES: Final = 12 * DIFF_BYTES
"""The longest answer from inside: three diffs, in which some letters take six."""
_INDEX: Final = ("index", "sharedindex.*")
_EXCLUDE: Final = "info/exclude"
_RULES: Final = (_EXCLUDE, "info/attributes")
_PYTHON: Final = (str(Path(sys.executable).resolve()), "-I", "-S", "-c")
_COUNTS: Final = re.compile(r"(\d{1,9}|-)\t(\d{1,9}|-)\t")
_SCOPES: Final = frozenset(get_args(Scope))

# The agent's configuration must not change the form of what is parsed.
FORM: Final = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--find-renames", "--ignore-submodules=none"),
)


@dataclass(frozen=True, slots=True)
class InPlace:
    """A person's folder that an agent works in."""

    folder: Path
    began: int
    """When the session began to work there, in nanoseconds: what changed later may be its own."""
    is_protected: bool
    """Whether its agent cannot change the repository."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The files of the repository that its owner's git obeys and the agent did not change."""
        if self.is_protected:
            return (*_INDEX, *_RULES)
        common = self.folder / ".git"
        return tuple(name for name in _RULES if _is_older(common / name, self.began))


async def changes(inside: Inside, *, start: str, sent: str) -> Sequence[Diff]:
    """Show what changed since a commit, of which `sent` was pushed; empty parts are left out."""
    scopes = [("uncommitted", "", ""), ("committed", sent or start, "HEAD")]
    if sent:
        scopes.append(("pushed", start, sent))
    # Also the files that are never shipped.
    shown = replace(inside, settings={**inside.settings, "core.excludesFile": "/dev/null"})
    return await _look(shown, inside.workspace, scopes, known=start)


async def changes_in_place(inside: Inside, place: InPlace) -> Sequence[Diff]:
    """Show what is uncommitted in a person's folder, which git only reads."""
    return await _look(
        inside,
        place.folder,
        [("uncommitted", "", "")],
        takes=place.takes,
        known="HEAD" if place.is_protected else "",
        began=place.began,
        in_place=True,
    )


async def find_repositories(inside: Inside, place: InPlace) -> Sequence[str]:
    """List the repositories in a person's folder that changed what git runs since work began."""
    seen = await _view(inside, place.folder, [], began=place.began, in_place=True)
    return _names(seen.get("repositories"))


async def count(inside: Inside, since: str) -> Changes | None:
    """Count the files and lines that changed since a commit; None if git cannot tell."""
    try:
        # With the clone's own index: what is counted is what will be shipped.
        (diff,) = await _look(
            inside, inside.workspace, [("uncommitted", since, "")], takes=_INDEX, counts=True
        ) or (Diff("uncommitted"),)
    except GitFailed:
        return None
    if diff.problem:
        return None
    # A binary file has a dash in place of each number.
    counts = [found for line in diff.stat.split("\0") if (found := _COUNTS.match(line))]
    added, removed = (sum(int(each[at]) for each in counts if each[at] != "-") for at in (1, 2))
    return Changes(len(counts), added, removed)


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
    return Compared(commit, base, await _diff_commits(git, mirror, onto, commit))


async def _diff_commits(git: Git, mirror: Path, onto: str, commit: str) -> str:
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


async def _look(
    inside: Inside, folder: Path, scopes: Sequence[tuple[str, str, str]], **more: Any
) -> Sequence[Diff]:
    seen = await _view(inside, folder, scopes, **more)
    found = [diff for each in _list(seen, "diffs") if (diff := _diff(each)) is not None]
    nested = (*_names(seen.get("nested")), *_names(seen.get("repositories")))
    if found:
        found[0] = replace(
            found[0],
            hidden=tuple(map(_hidden, _list(seen, "hidden"))),
            repositories=tuple(dict.fromkeys(nested)),
            is_partial=seen.get("unsearched") is True,
        )
    return [diff for diff in found if not diff.is_empty]


async def _view(
    inside: Inside,
    folder: Path,
    scopes: Sequence[tuple[str, str, str]],
    *,
    takes: Sequence[str] = (),
    known: str = "",
    began: int = 0,
    counts: bool = False,
    in_place: bool = False,
) -> Mapping[str, Any]:
    """Run the viewer.

    Raises:
        GitFailed: it could not run, or took too long.
    """
    task = {
        "folder": str(folder),
        "form": FORM,
        "most": DIFF_BYTES,
        "scopes": scopes,
        "counts": counts,
        "takes": takes,
        "known": known,
        "began": began,
        "in_place": in_place,
    }
    status, written, words = await inside.run(
        *(*_PYTHON, _source(), json.dumps(task)),
        seconds=QUICK_SECONDS,
        limit=_SAID_BYTES,
        name="git diff",
    )
    if status != 0:
        raise GitFailed("git diff", words)
    return await asyncio.to_thread(_parse, written)


@cache
def _source() -> str:
    return inspect.getsource(viewer)


def _parse(written: bytes) -> Mapping[str, Any]:
    """Read what the viewer says: it comes from inside, and may be anything."""
    try:
        said = json.loads(written)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise GitFailed("git diff", "the answer cannot be read")
    return said


def _diff(said: Mapping[str, Any]) -> Diff | None:
    if said.get("scope") not in _SCOPES:
        return None
    text, stat, problem = (_text(said.get(name)) for name in ("text", "stat", "problem"))
    return Diff(said["scope"], text, stat, problem)


def _hidden(said: Mapping[str, Any]) -> Hidden:
    count = said.get("count")
    return Hidden(
        _text(said.get("source")),
        _names(said.get("names")),
        count if isinstance(count, int) else 0,
        is_applied=said.get("applied") is not False,
    )


def _list(seen: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = seen.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _names(found: object) -> tuple[str, ...]:
    return tuple(map(_text, found[: viewer.MOST_NAMED])) if isinstance(found, list) else ()


def _text(found: object) -> str:
    """Read a text that may have bytes of a file name that are no letters."""
    return str(found or "").encode(errors="surrogateescape").decode(errors="replace")


def _is_older(file: Path, when: int) -> bool:
    try:
        return file.lstat().st_ctime_ns <= when
    except OSError:
        return False
