"""What people see of a clone before anything of it is shipped."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.model.workspaces import Changes, Clone, Diff, Hidden
from app.repos.differences import DIFF_BYTES
from app.repos.viewer import search
from tests.support.deep import BELOW_PATHS, dug
from tests.support.git_server import git
from tests.support.variants import quick
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
        "mkdir deep; echo deep > deep/file; echo no > ignored; echo ignored > .gitignore"
    )

    _, changed = await shown(yard, script)

    assert sorted(changed) == ["committed", "uncommitted"]
    assert files(changed["committed"]) == ["+++ b/one"]
    assert files(changed["uncommitted"]) == [
        *("+++ b/.gitignore", "+++ b/README.md", "+++ b/deep/file", "+++ b/new")
    ]
    assert changed["uncommitted"].hidden == (Hidden(".gitignore", ("ignored",), 1),)
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

    (diff,) = await yard.checkouts.in_place.changes(folder, own, "demo", began=0)

    assert (diff.scope, files(diff)) == ("uncommitted", ["+++ b/new.txt"])
    assert {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))} == before
    assert list(own.iterdir()) == []


HIDING = {
    "the home": "mkdir -p ~/.config/git; echo '*' > ~/.config/git/ignore",
    "info/exclude": "mkdir -p .git/info; echo '*' > .git/info/exclude",
    "bits of the index": "git update-index --assume-unchanged README.md; git add -N new; "
    "git update-index --skip-worktree new",
    "a filter": "mkdir -p .git/info; git config filter.x.clean 'git show HEAD:README.md'; "
    "echo 'README.md filter=x' > .git/info/attributes",
    "another work tree": "mkdir .git/else; git config core.worktree else",
    "a repository without commits": "git init -q inner",
}


@pytest.mark.parametrize("script", quick(4, HIDING))
async def test_an_agent_hides_no_change_in_its_clone(yard: Yard, script: str) -> None:
    _, changed = await shown(yard, f"echo more >> README.md; echo new > new; {script}")

    assert files(changed["uncommitted"]) == ["+++ b/README.md", "+++ b/new"]


async def test_rules_that_hide_something_in_a_clone_are_named(yard: Yard) -> None:
    script = (
        "mkdir -p deep .git/info; echo '*' > deep/.gitignore; echo bad > deep/evil; "
        "echo '*' > .git/info/exclude; git init -q inner"
    )

    _, changed = await shown(yard, script)

    diff = changed["uncommitted"]
    assert [(each.source, each.is_applied) for each in diff.hidden] == [
        ("deep/.gitignore", True),
        (".git/info/exclude", False),
    ]
    assert diff.hidden[0].names == ("deep/.gitignore", "deep/evil")
    assert diff.repositories == ("inner/",)


async def test_what_an_agent_ignores_in_its_home_is_shipped_but_not_its_own_settings(
    yard: Yard,
) -> None:
    clone, changed = await shown(
        yard,
        "mkdir -p ~/.config/git .claude; echo '*' > ~/.config/git/ignore; echo new > new; "
        "echo '{}' > .claude/settings.local.json; git config status.showUntrackedFiles no",
    )

    gathered = await yard.checkouts.gather(clone, "What was left")

    assert files(changed["uncommitted"]) == ["+++ b/.claude/settings.local.json", "+++ b/new"]
    _, committed = await yard.do(clone, f"git show --format= --name-only {gathered.commit}")
    assert committed == "new\n"
    start = yard.server.head("acme/app", "main")
    assert await yard.checkouts.unshipped(clone, sent=gathered.commit, start=start) == ""
    counted = await yard.checkouts.count_changes(clone, start)
    assert counted == Changes(1, 1, 0)


async def test_a_sparse_checkout_misses_no_file(yard: Yard) -> None:
    _, changed = await shown(yard, "git sparse-checkout set --no-cone /other; echo new > new")

    assert files(changed["uncommitted"]) == ["+++ b/new"]


async def test_a_repository_without_commits_shows_its_new_files(yard: Yard, tmp_path: Path) -> None:
    folder, own = tmp_path / "mine", tmp_path / "own"
    for each in (own, folder):
        each.mkdir()
    git(folder, "init", "-q")
    (folder / "new.txt").write_text("new\n")

    (diff,) = await yard.checkouts.in_place.changes(folder, own, "demo", began=0)

    assert (diff.problem, files(diff)) == ("", ["+++ b/new.txt"])


async def test_a_part_of_a_repository_shows_what_changed_in_it(yard: Yard, tmp_path: Path) -> None:
    top, own = tmp_path / "mine", tmp_path / "own"
    for each in (own, top / "part"):
        each.mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "commit", "-qm", "First", "--allow-empty")
    (top / "part" / "new.txt").write_text("new\n")
    (top / "other.txt").write_text("other\n")

    (diff,) = await yard.checkouts.in_place.changes(top / "part", own, "demo", began=0)

    assert (diff.problem, files(diff)) == ("", ["+++ b/part/new.txt"])


def test_a_folder_of_any_depth_hides_no_repository_next_to_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "inner" / "bare"], check=True)

    with dug(tmp_path, BELOW_PATHS):
        found = search(tmp_path, began=0)

    assert found == (["inner/bare/"], True)
