"""Shallow repositories: only the latest history is fetched, and work goes its usual way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.git_server import git
from tests.support.yard import Yard, open_yard

APP = "acme/app"
BRANCH = "agent/demo/web-t1"
FETCHED = 50
EARLIER = 60


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        bare = yard.server.path(APP)
        for number in range(EARLIER):
            commit = git(bare, "commit-tree", "main^{tree}", "-p", "main", "-m", str(number))
            git(bare, "update-ref", "refs/heads/main", commit)
        yard.shallow.add(yard.repository())
        yield yard


async def count(yard: Yard, what: str = "HEAD") -> int:
    status, said = await yard.do(yard.clone(), f"git rev-list --count {what}")
    assert status == 0, said
    return int(said)


async def test_only_the_latest_history_is_fetched(yard: Yard) -> None:
    opened = await yard.open(yard.clone())

    assert opened is not None
    assert opened.commit == yard.server.head(APP, "main")
    assert await count(yard) == FETCHED
    assert (yard.clone().folder / "README.md").read_text() == "# Hello\n"


@pytest.mark.slow
async def test_work_in_a_shallow_clone_is_pushed_fetched_and_pushed_again(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    commit = "git add . && git commit -qm Work && git push 2>&1"

    first = await yard.do(clone, f"echo 1 > one; {commit}")
    yard.server.commit(APP, {"theirs": "theirs"}, "Theirs")
    merge = "git fetch -q origin && git merge -q -m Merge origin/main"
    second = await yard.do(clone, f"{merge} && echo 2 > two; {commit}")

    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert yard.server.show(APP, BRANCH, "two") == "2"
    listed = git(yard.server.path(APP), "rev-list", "--count", BRANCH)
    # All that was there before, the first commit of all and what was added: nothing was cut off.
    assert int(listed) == 1 + EARLIER + 4
    assert yard.server.show(APP, BRANCH, "theirs") == "theirs"


@pytest.mark.slow
async def test_a_force_push_from_a_shallow_clone_is_refused(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    push = "git add . && git commit -qm Work && git push"
    await yard.do(clone, f"echo 1 > one; {push}")

    status, said = await yard.do(clone, f"git reset -q --hard HEAD~1; echo 2 > two; {push} -f 2>&1")

    assert status != 0
    assert "This push would overwrite commits on" in said


@pytest.mark.slow
async def test_conflicts_with_the_base_are_seen_in_a_shallow_clone(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo mine > README.md; git commit -qam Mine; git push")
    yard.server.commit(APP, {"README.md": "theirs"}, "Theirs")

    assert await yard.checkouts.conflicts(clone, "main", yard.sent[-1]) == ("README.md",)


@pytest.mark.slow
async def test_all_history_is_fetched_once_that_is_wanted(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.shallow.clear()

    second = yard.clone(2, branch="agent/demo/web-t2")
    await yard.open(second)
    status, said = await yard.do(second, "git rev-list --count HEAD")
    old = await yard.do(clone, "echo 1 > one; git add . && git commit -qm Old && git push 2>&1")

    assert (status, int(said)) == (0, EARLIER + 1)
    assert old[0] == 0, old[1]


@pytest.mark.slow
async def test_a_shallow_mirror_is_rebuilt_and_the_clone_goes_on(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    push = "git add . && git commit -qm Work && git push 2>&1"
    await yard.do(clone, f"echo 1 > one; {push}")
    bare = yard.server.path(APP)
    for number in range(EARLIER):
        commit = git(bare, "commit-tree", "main^{tree}", "-p", "main", "-m", f"new {number}")
        git(bare, "update-ref", "refs/heads/main", commit)

    await yard.mirrors.rebuild(clone.repository, "demo")

    status, said = await yard.do(clone, f"echo 2 > two; {push}")
    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "two") == "2"


async def test_a_large_past_is_not_fetched(yard: Yard) -> None:
    mirror = await yard.mirrors.refresh(yard.repository(), "demo")

    listed = await yard.git.run(mirror, "cat-file", "--batch-all-objects", "--batch-check")

    assert listed.count(b" commit ") == FETCHED
