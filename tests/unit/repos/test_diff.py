"""What people see of a clone before anything of it is shipped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.workspaces import Clone
from app.repos.clone import DIFF_BYTES
from tests.support.yard import Yard, open_yard


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        yield yard


async def shown(yard: Yard, script: str) -> tuple[Clone, str]:
    """Open a clone, do something in it, and look at the diff."""
    clone = yard.clone()
    opened = await yard.open(clone)
    assert opened is not None
    await yard.do(clone, script)
    return clone, await yard.checkouts.diff(clone, opened.commit)


async def test_the_diff_shows_commits_changes_and_new_files(yard: Yard) -> None:
    script = (
        "echo one > one; git add one; git commit -qm One; echo more >> README.md; echo new > new; "
        "mkdir -p deep .git/info; echo deep > deep/file; echo no > ignored; "
        "echo ignored > .git/info/exclude"
    )

    _, diff = await shown(yard, script)

    assert [line for line in diff.splitlines() if line.startswith("+++")] == [
        "+++ b/README.md",
        "+++ b/deep/file",
        "+++ b/new",
        "+++ b/one",
    ]
    assert {"+one", "+more", "+new", "+deep"} <= set(diff.splitlines())


async def test_a_change_in_the_moment_of_the_checkout_is_seen(yard: Yard) -> None:
    # Size and time of the file are those that git knows; only the index, no older than the file,
    # tells git to look inside.
    script = (
        "git config core.trustctime false; touch -d 2026-01-01 README.md; "
        "git update-index README.md; "
        "tr a-z b-za < README.md > .git/other; cat .git/other > README.md; "
        "touch -d 2026-01-01 README.md .git/index"
    )

    _, diff = await shown(yard, script)

    assert "+++ b/README.md" in diff.splitlines()


async def test_looking_leaves_the_clone_as_it_is(yard: Yard) -> None:
    clone, _ = await shown(
        yard, "echo staged > staged; git add staged; echo new > new; cp .git/index i"
    )

    status, said = await yard.do(
        clone, "git status --short; cmp i .git/index && ls .git | grep -c '^index'"
    )

    assert (status, said) == (0, "A  staged\n?? i\n?? new\n1\n")


async def test_a_diff_that_is_too_long_names_the_files(yard: Yard) -> None:
    _, diff = await shown(yard, f"yes | head -c {2 * DIFF_BYTES} > large; echo new > new")

    assert diff.startswith("(full diff not available")
    assert "large" in diff
    assert "new" in diff


async def test_a_clone_that_git_cannot_read_has_no_diff_and_says_why(yard: Yard) -> None:
    _, diff = await shown(yard, "rm -rf .git/objects .git/refs; echo gone > .git/HEAD")

    assert diff.startswith("(no diff: ")
