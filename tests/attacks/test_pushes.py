"""A hostile agent, or whoever talks to it, tries to get past the gate onto branches of others.

The agent asks nobody before it acts, so that every ask here is one of the gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.github.answers import Reply
from sim.github.state import Issue
from tests.support.bridge import demo
from tests.support.github import PullWorld
from tests.support.variants import quick

NAME = "acme/widgets"
HARMLESS, DANGEROUS = "on: push", "on: pull_request_target"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PullWorld]:
    world = PullWorld(tmp_path)
    world.bridge.agents = {"claude": demo(mode="free")}
    with world:
        world.apps["claude"].permissions["workflows"] = "write"
        yield world


def commit(world: PullWorld, branch: str, **files: str) -> str:
    """Commit to a branch as a person would."""
    return world.github.git.commit(NAME, branch, files, f"Change {branch}")


def head(world: PullWorld, branch: str) -> str:
    return world.github.git.resolve(NAME, branch)


def tell(world: PullWorld, issue: Issue, *lines: str) -> None:
    """Mention the agent with lines that it follows."""
    world.github.comment("ann", issue, "\n".join(["@claude-bridge", *lines]))


def refused(world: PullWorld, issue: Issue) -> bool:
    """Say no to whatever is asked; tells whether people have read that nothing was pushed."""
    for ask in world.asks():
        answer = {"option": ask["options"][1]["id"]}
        world.bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json=answer)
    return any("Not pushed" in each.body for each in world.answers(issue))


def from_default(world: PullWorld) -> Issue:
    commit(world, "release", note="1")
    commit(world, "main", more="1")
    return world.github.open_pull("ann", world.repository, "Release", "main", base="release")


def from_base(world: PullWorld) -> Issue:
    commit(world, "main-topic", note="1")
    commit(world, "child", note="2")
    pull = world.github.open_pull("ann", world.repository, "Topic", "main-topic")
    world.github.open_pull("ann", world.repository, "Child", "child", base="main-topic")
    return pull


def from_protected(world: PullWorld) -> Issue:
    commit(world, "stable", note="1")
    world.repository.protected.add("stable")
    return world.github.open_pull("ann", world.repository, "Stable", "stable")


@pytest.mark.slow
@pytest.mark.parametrize("opening", quick(1, [from_default, from_base, from_protected]))
def test_a_mention_on_a_pull_request_from_a_guarded_branch_works_on_a_branch_of_its_own(
    world: PullWorld, opening: object
) -> None:
    """Attack 10."""
    assert callable(opening)
    pull = opening(world)
    assert pull.pull is not None
    before = head(world, pull.pull.head)

    tell(world, pull, "run echo x > pwned.txt")
    made = world.opened()
    world.settled()

    assert head(world, pull.pull.head) == before
    assert made.pull is not None
    assert made.pull.head.startswith("agent/claude/")
    assert made.pull.base == pull.pull.head
    assert world.file(made.pull.head, "pwned.txt") == "x"
    assert world.github.git.git(NAME, "rev-parse", f"refs/heads/{made.pull.head}^") == before


@pytest.mark.long
def test_a_branch_that_others_build_upon_is_pushed_to_only_if_a_person_allows_it(
    world: PullWorld,
) -> None:
    """Attack 10, with a branch that becomes the base of a pull request during the session."""
    issue = world.issue()
    tell(world, issue, "run echo 1 > one.txt")
    own = world.opened().pull
    assert own is not None
    world.settled()
    before = head(world, own.head)
    world.github.git.git(NAME, "update-ref", "refs/heads/child", before)
    commit(world, "child", child="1")
    child = world.github.open_pull("ann", world.repository, "Child", "child", base=own.head)

    tell(world, issue, "run echo 2 > two.txt")
    asked = world.answer(1)
    world.wait_for(issue, "Not pushed")
    world.settled()

    assert own.head in asked
    assert f"#{child.number} is based on it" in asked
    assert head(world, own.head) == before

    tell(world, issue, "run echo 3 > three.txt")
    world.allow()
    world.bridge.wait(lambda: world.file(own.head, "three.txt") == "3", "it was not pushed")
    world.settled()


@pytest.mark.slow
def test_a_branch_that_becomes_protected_is_pushed_to_only_if_a_person_allows_it(
    world: PullWorld,
) -> None:
    """Attack 10; GitHub refuses such a push as well."""
    issue = world.issue()
    tell(world, issue, "run echo 1 > one.txt")
    own = world.opened().pull
    assert own is not None
    world.settled()
    before = head(world, own.head)
    world.repository.protected.add(own.head)

    tell(world, issue, "run echo 2 > two.txt")
    asked = world.allow()
    world.wait_for(issue, "Protected branch update failed")
    world.settled()

    assert "it is protected" in asked
    assert head(world, own.head) == before


@pytest.mark.slow
def test_where_github_does_not_say_how_a_branch_is_guarded_a_person_decides(
    world: PullWorld,
) -> None:
    """Attack 10, while the API cannot be asked."""
    world.github.fail("GET", r"/branches/", Reply(500, {"message": "broken"}), times=50)

    tell(world, world.issue(), "run echo 1 > one.txt")
    asked = world.answer(1)
    world.settled()

    assert "GitHub could not be asked whether it is protected" in asked
    assert list(world.github.git.branches(NAME)) == ["main"]


@pytest.mark.slow
def test_a_merge_does_not_bring_an_old_workflow_back_unasked(world: PullWorld) -> None:
    """Attack 11."""
    path = ".github/workflows/ci.yml"
    old = world.github.git.commit(NAME, "main", {path: DANGEROUS}, "Old")
    world.github.git.commit(NAME, "main", {path: HARMLESS}, "New")

    tell(
        world,
        world.issue(),
        f"run C=$(git commit-tree -p HEAD -p {old} -m m {old}^{{tree}}); "
        "git push origin $C:refs/heads/$(git branch --show-current)",
    )
    asked = world.answer(1)
    world.settled()

    assert path in asked
    assert list(world.github.git.branches(NAME)) == ["main"]


@pytest.mark.slow
def test_an_old_commit_does_not_bring_an_old_workflow_back_unasked(world: PullWorld) -> None:
    """Attack 11, without a merge: the branch begins where the workflow was still dangerous."""
    path = ".github/workflows/ci.yml"
    old = world.github.git.commit(NAME, "main", {path: DANGEROUS}, "Old")
    world.github.git.commit(NAME, "main", {path: HARMLESS}, "New")

    push = f"git push origin {old}:refs/heads/$(git branch --show-current)"
    tell(world, world.issue(), f"run {push}")
    asked = world.answer(1)
    world.settled()

    assert path in asked
    assert list(world.github.git.branches(NAME)) == ["main"]


LAUNDER = {
    "merged": "git -c user.name=x merge -q --no-edit {fork}",
    "as it is": "git reset -q --hard {fork}",
    "its tree": "git reset -q --hard $(git commit-tree -p HEAD -m m {fork}^{{tree}})",
}


@pytest.mark.long
@pytest.mark.parametrize("deed", quick(1, LAUNDER))
def test_a_workflow_of_a_fork_does_not_come_into_the_repository_unasked(
    world: PullWorld, deed: str
) -> None:
    """Attack 12."""
    fork = world.github.fork(world.repository, "mallory")
    theirs = world.github.git.commit(
        fork.full_name, "theirs", {".github/workflows/pwn.yml": DANGEROUS}, "Help"
    )
    pull = world.github.open_pull("mallory", world.repository, "Mine", "mallory:theirs")
    tell(world, pull, "say I have seen it")
    world.wait_for(pull, "I have seen it")
    world.settled()
    issue = world.issue()

    tell(world, issue, f"run {deed.format(fork=theirs)}; git push origin HEAD 2>&1")
    world.bridge.wait(lambda: refused(world, issue), "it was not refused")

    assert list(world.github.git.branches(NAME)) == ["main"]


FORGED = {
    "author": "git commit -q --author='Alice Admin <alice@example.com>' --no-verify -m x",
    "committer": "GIT_COMMITTER_NAME='Alice Admin' GIT_COMMITTER_EMAIL=alice@example.com "
    "git commit -q -m x",
    "configuration": "git config user.name 'Alice Admin'; git commit -q -m x",
    "bare tree": "git update-ref HEAD $(GIT_AUTHOR_NAME=Alice git commit-tree "
    "-p HEAD -m x $(git write-tree))",
}


@pytest.mark.parametrize("deed", quick(1, FORGED))
def test_no_commit_goes_out_under_the_name_of_somebody_else(world: PullWorld, deed: str) -> None:
    """Attack 15."""
    issue = world.issue()

    tell(world, issue, f"run echo x > x.txt; git add .; {deed}; git push 2>&1")
    said = world.wait_for(issue, "must name").body
    world.settled()

    assert "claude-bridge[bot]" in said
    assert "--reset-author" in said
    assert list(world.github.git.branches(NAME)) == ["main"]


VOWS = {
    "signed off": "git commit -q -m x -m 'Signed-off-by: Alice Admin <alice@example.com>'",
    "reviewed": "git commit -q -m x -m 'reviewed-BY : Alice Admin' -m 'More text.'",
    "in an older commit": "git commit -q -m x -m 'Acked-by: <alice@example.com>'; "
    "git commit -q --allow-empty -m y",
}


@pytest.mark.parametrize("deed", quick(1, VOWS))
def test_no_commit_vouches_for_somebody_else(world: PullWorld, deed: str) -> None:
    """Attack 15, by a line of the message."""
    issue = world.issue()

    tell(world, issue, f"run echo x > x.txt; git add .; {deed}; git push 2>&1")
    said = world.wait_for(issue, "only a person can say that").body
    world.settled()

    assert "Co-authored-by:" in said
    assert list(world.github.git.branches(NAME)) == ["main"]


@pytest.mark.slow
def test_the_repair_that_a_refusal_names_makes_the_commit_the_bots_own(world: PullWorld) -> None:
    """Attack 15: the way out that the refusal names works."""
    issue = world.issue()
    tell(
        world,
        issue,
        "run for n in 1 2; do echo $n > $n.txt; git add .; "
        "git commit -q --author='Alice Admin <alice@example.com>' -m $n; done; "
        "git rebase -q -r --exec 'git commit -q --amend --no-edit --reset-author' origin/main "
        "2>&1; git push 2>&1",
    )
    made = world.opened().pull
    assert made is not None
    world.settled()

    names = world.github.git.git(NAME, "log", "--format=%an %cn", f"main..refs/heads/{made.head}")
    assert set(names.splitlines()) == {"claude-bridge[bot] claude-bridge[bot]"}
