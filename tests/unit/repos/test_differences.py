"""What people see of a clone before anything of it is shipped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.workspaces import Clone, Diff
from app.repos.differences import DIFF_BYTES
from tests.support.git_server import git
from tests.support.yard import Yard, open_yard


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        yield yard


async def shown(yard: Yard, script: str) -> tuple[Clone, dict[str, Diff]]:
    """Open a clone, do something in it, and look at what changed, by how far it got."""
    clone = yard.clone()
    opened = await yard.open(clone)
    assert opened is not None
    await yard.do(clone, script)
    sent = yard.sent[-1] if yard.sent else ""
    changed = await yard.checkouts.changes(clone, start=opened.commit, sent=sent)
    return clone, {diff.scope: diff for diff in changed}


def files(diff: Diff) -> list[str]:
    return [line for line in diff.text.splitlines() if line.startswith("+++")]


async def test_what_is_uncommitted_and_what_is_committed_are_apart(yard: Yard) -> None:
    script = (
        "echo one > one; git add one; git commit -qm One; echo more >> README.md; echo new > new; "
        "mkdir -p deep .git/info; echo deep > deep/file; echo no > ignored; "
        "echo ignored > .git/info/exclude"
    )

    _, changed = await shown(yard, script)

    assert sorted(changed) == ["committed", "uncommitted"]
    assert files(changed["committed"]) == ["+++ b/one"]
    assert files(changed["uncommitted"]) == ["+++ b/README.md", "+++ b/deep/file", "+++ b/new"]
    assert {"+more", "+new", "+deep"} <= set(changed["uncommitted"].text.splitlines())


async def test_what_was_pushed_is_not_listed_as_committed_again(yard: Yard) -> None:
    script = (
        "echo one > one; git add one; git commit -qm One; git push -q; "
        "echo two > two; git add two; git commit -qm Two"
    )

    _, changed = await shown(yard, script)

    assert files(changed["pushed"]) == ["+++ b/one"]
    assert files(changed["committed"]) == ["+++ b/two"]


async def test_the_form_of_a_diff_does_not_follow_the_configuration_of_the_clone(
    yard: Yard,
) -> None:
    script = (
        "git config diff.noprefix true; git config diff.external /bin/false; "
        "git config color.diff always; git config diff.context 0; echo more >> README.md"
    )

    _, changed = await shown(yard, script)

    assert files(changed["uncommitted"]) == ["+++ b/README.md"]
    assert "\x1b" not in changed["uncommitted"].text


async def test_a_change_in_the_moment_of_the_checkout_is_seen(yard: Yard) -> None:
    # Size and time of the file are those that git knows; only the index, no older than the file,
    # tells git to look inside.
    script = (
        "git config core.trustctime false; touch -d 2026-01-01 README.md; "
        "git update-index README.md; "
        "tr a-z b-za < README.md > .git/other; cat .git/other > README.md; "
        "touch -d 2026-01-01 README.md .git/index"
    )

    _, changed = await shown(yard, script)

    assert files(changed["uncommitted"]) == ["+++ b/README.md"]


async def test_looking_leaves_the_clone_as_it_is(yard: Yard) -> None:
    clone, _ = await shown(
        yard, "echo staged > staged; git add staged; echo new > new; cp .git/index i"
    )

    status, said = await yard.do(
        clone, "git status --short; cmp i .git/index && ls .git | grep -c '^index'"
    )

    assert (status, said) == (0, "A  staged\n?? i\n?? new\n1\n")


@pytest.mark.long
async def test_a_diff_that_is_too_long_names_the_files(yard: Yard) -> None:
    _, changed = await shown(yard, f"yes | head -c {2 * DIFF_BYTES} > large; echo new > new")

    assert changed["uncommitted"].text == ""
    assert f"{DIFF_BYTES}\t0\tlarge\0" in changed["uncommitted"].stat
    assert "1\t0\tnew\0" in changed["uncommitted"].stat


async def test_a_clone_that_git_cannot_read_says_why(yard: Yard) -> None:
    _, changed = await shown(yard, "rm -rf .git/objects .git/refs; echo gone > .git/HEAD")

    assert [diff.text for diff in changed.values()] == ["", ""]
    assert "not a git repository" in changed["uncommitted"].problem


async def test_a_folder_in_place_shows_what_is_uncommitted_and_stays_as_it_is(
    yard: Yard, tmp_path: Path
) -> None:
    folder, own = tmp_path / "mine", tmp_path / "own"
    own.mkdir()
    folder.mkdir()
    for command in ("init -q", "add .", "commit -qm First --allow-empty"):
        git(folder, *command.split())
    (folder / "new.txt").write_text("new\n")
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}

    (diff,) = await yard.checkouts.changes_in_place(folder, own, "demo")

    assert (diff.scope, files(diff)) == ("uncommitted", ["+++ b/new.txt"])
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before
    assert list(own.iterdir()) == []
