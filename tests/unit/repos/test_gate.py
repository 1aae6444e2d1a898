"""What may be pushed, and what the agent reads when it may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from app.model.workspaces import Author
from app.repos.inspection import Inspector, Update
from tests.support.git_server import git
from tests.support.variants import quick
from tests.support.yard import BOT, READ, SECRET, WRITE, Yard, open_yard

BRANCH = "agent/demo/web-t1"


REFUSED: Final = [
    ("git push origin HEAD:main", f"This session can push only to {BRANCH}"),
    ("git push origin HEAD:refs/heads/other", ", not to refs/heads/other"),
    ("git push origin HEAD:refs/tags/v1", "not to refs/tags/v1"),
    ("git push origin HEAD:refs/pull/1/head", "not to refs/pull/1/head"),
    ("git push origin HEAD HEAD:refs/heads/main", "not to refs/heads/main"),
    ("git push --mirror origin", "This session can push only to"),
    ("git push origin 'HEAD:refs/heads/a\u2028b\u0085c'", "not to refs/heads/a?b?c"),
    ("git push origin HEAD:refs/replace/0123", "refs/replace"),
    ("git push origin HEAD:refs/notes/commits", "not to refs/notes/commits"),
    ("git push origin HEAD:HEAD", "not to refs/heads/HEAD"),
    ("git push origin HEAD:refs/HEAD", "not to refs/HEAD"),
    (
        "git push origin HEAD:refs/heads/--upload-pack=x",
        "not to refs/heads/--upload-pack=x",
    ),
    ("git push origin 'HEAD:refs/heads/a\u202eb'", "not to refs/heads/a?b"),
    ("git push origin HEAD:refs/heads/agent/demo/web-t2", "refs/heads/agent/demo/web-t2"),
    ("git push origin HEAD:refs/agent-bridge/begun", "not to refs/agent-bridge/begun"),
    (
        "git cherry-pick --allow-empty --keep-redundant-commits origin/main; git push",
        "names Ann <ann@example.com> as its author",
    ),
    (
        "git push -q; git commit -q --amend -m Other; git push --force",
        "Force pushes are not allowed",
    ),
    ("git push -q; git push origin :$(git branch --show-current)", "deleted"),
    (
        "git push -q; git checkout -q --orphan x; git commit -qm x; git push -f origin HEAD:"
        + BRANCH,
        "Force pushes are not allowed",
    ),
    (
        "mkdir -p .github/workflows; echo on > .github/workflows/ci.yml; git add .; "
        "git commit -qm ci; git push",
        "need a person's approval and did not get it: .github/workflows/ci.yml",
    ),
    (
        "mkdir -p .github/workflows; echo on > .github/workflows/ci.yml; git add .; "
        "git commit -qm ci; git rm -qr .github; git commit -qm no; git push",
        "Changes to workflow files need a person's approval",
    ),
    (
        "mkdir -p .GitHub/Workflows; echo on > .GitHub/Workflows/ci.yml; git add .; "
        "git commit -qm ci; git push",
        "Changes to workflow files need a person's approval",
    ),
    (f"echo {SECRET} > s; git add .; git commit -qm s; git push", "s holds a secret"),
    (
        f"echo {SECRET} > s; git add .; git commit -qm s; git rm -q s; git commit -qm t; git push",
        "s holds a secret",
    ),
    (f"git commit -q --allow-empty -m {SECRET}; git push", "The message of commit"),
    (f"echo > {SECRET}; git add .; git commit -qm s; git push", "A file name holds"),
    (
        f"printf %s {SECRET} | base64 > s; git add .; git commit -qm s; git push",
        "s holds a secret",
    ),
    (
        f"printf %s {SECRET} | sed 's/./&\\x00/g' > s; git add .; git commit -qm s; git push",
        "s holds a secret",
    ),
    (
        "head -c 60000000 /dev/zero > big; git add .; git commit -qm big; git push",
        "big has 57 MiB",
    ),
]
"""What is pushed, and what its agent reads."""


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        yield yard


async def test_what_an_agent_commits_and_pushes_is_on_the_remote_with_the_bot_as_author(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)

    status, said = await yard.do(
        clone, "echo hi > new.txt; git add .; git commit -qm New; git push"
    )

    assert status == 0, said
    assert yard.server.show("acme/app", BRANCH, "new.txt") == "hi"
    assert yard.server.log("acme/app", BRANCH) == (
        "demo[bot] <demo@bots.example.com>\nNew\n\nAgent-Bridge-Session: web:t1:demo"
    )
    assert yard.sent == [yard.server.head("acme/app", BRANCH)]
    assert [visit.token for visit in yard.server.pushes()] == [WRITE]


async def test_an_agent_signs_off_for_itself_and_credits_others(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)

    status, said = await yard.do(
        clone,
        "echo hi > new.txt; git add .; git commit -qs -m New -m 'It was Reviewed-by: no one.' "
        "--trailer 'Co-authored-by: Ann <ann@example.com>'; git push",
    )

    assert status == 0, said
    assert "Signed-off-by: demo[bot] <demo@bots.example.com>" in yard.server.log("acme/app", BRANCH)


async def test_a_second_push_adds_to_the_first(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo 1 > a; git add .; git commit -qm One; git push")

    status, said = await yard.do(clone, "echo 2 > b; git add .; git commit -qm Two; git push")

    assert status == 0, said
    assert yard.server.log("acme/app", BRANCH, "%s %p") == f"Two {yard.sent[0][:7]}"


@pytest.mark.parametrize(("script", "reason"), quick(14, REFUSED))
async def test_what_may_not_be_pushed_is_refused_with_a_reason_the_agent_reads(
    yard: Yard, script: str, reason: str
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    before = yard.server.head("acme/app", "main")

    _, said = await yard.do(clone, f"echo x > x; git add .; git commit -qm x; {script}")

    assert reason in said
    assert yard.server.head("acme/app", "main") == before
    assert set(yard.server.branches("acme/app")) <= {"main", BRANCH}
    assert yard.server.head("acme/app", BRANCH) in {"", *yard.sent[:1]}


async def test_workflow_files_go_on_when_somebody_allows_it(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.allows = True
    files = "mkdir -p .github/workflows; echo on > .github/workflows/ci.yml"

    status, said = await yard.do(clone, f"{files}; git add .; git commit -qm ci; git push")

    assert status == 0, said
    assert yard.questions == [("Push changes to workflow files", [".github/workflows/ci.yml"])]
    assert yard.server.show("acme/app", BRANCH, ".github/workflows/ci.yml") == "on"


async def test_people_are_not_asked_about_workflow_files_that_the_remote_never_takes(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.allows = True
    yard.tokens.workflow_trouble = "the App may not. Grant it."
    files = "mkdir -p .github/workflows; echo on > .github/workflows/ci.yml"

    status, said = await yard.do(clone, f"{files}; git add .; git commit -qm ci; git push 2>&1")

    assert status != 0
    assert "cannot be pushed (.github/workflows/ci.yml): the App may not. Grant it." in said
    assert yard.questions == []


@pytest.mark.slow
async def test_merging_a_workflow_that_is_on_main_needs_no_question(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.server.commit("acme/app", {".github/workflows/ci.yml": "on"}, "CI")
    await yard.mirrors.refresh(clone.repository, "demo")
    own = "echo x > x; git add .; git commit -qm x"

    status, said = await yard.do(
        clone, f"{own}; git fetch -q; git merge -q origin/main -m merge && git push"
    )

    assert status == 0, said
    assert yard.questions == []
    assert yard.server.show("acme/app", BRANCH, ".github/workflows/ci.yml") == "on"


@pytest.mark.slow
async def test_a_workflow_that_changed_on_main_meanwhile_needs_no_question(yard: Yard) -> None:
    yard.server.commit("acme/app", {".github/workflows/ci.yml": "old"}, "CI")
    clone = yard.clone()
    await yard.open(clone)
    yard.server.commit("acme/app", {".github/workflows/ci.yml": "new"}, "CI")
    await yard.mirrors.refresh(clone.repository, "demo")

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status == 0, said
    assert yard.questions == []


@pytest.mark.slow
async def test_a_workflow_that_was_allowed_once_is_not_asked_about_again(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.allows = True
    files = "mkdir -p .github/workflows; echo on > .github/workflows/ci.yml"
    await yard.do(clone, f"{files}; git add .; git commit -qm ci; git push")

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status == 0, said
    assert len(yard.questions) == 1


async def test_the_files_of_a_push_are_named_to_the_letter(yard: Yard) -> None:
    clone = yard.clone(way="existing", branch="main")
    await yard.open(clone)
    names = [".github/workflows/a\u202elmy.sh", "b\n*c*", f"long/{'d' * 220}"]
    for name in names:
        (clone.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (clone.folder / name).write_text("x")

    yard.allows = True
    await yard.do(clone, "git add .; git commit -qm x; git push")

    assert yard.questions == [
        ("Push to main: it is the default branch", names),
        ("Push changes to workflow files", names[:1]),
    ]


async def test_the_default_branch_of_a_plain_remote_is_pushed_to_if_a_person_allows_it(
    yard: Yard,
) -> None:
    clone = yard.clone(way="existing", branch="main")
    await yard.open(clone)
    before = yard.server.head("acme/app", "main")

    _, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert yard.questions == [("Push to main: it is the default branch", ["x"])]
    assert (
        "Pushes to main need a person's approval, and this one did not get it: it is the default"
        in said
    )
    assert yard.server.head("acme/app", "main") == before
    yard.allows = True
    status, said = await yard.do(clone, "git push")
    assert status == 0, said


async def test_what_an_agent_left_is_committed_by_the_bot_whatever_its_configuration_says(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "git config user.name Ann; echo x > x")

    gathered = await yard.checkouts.gather(clone, "Left")

    assert await yard.checkouts.push(clone, gathered.commit) == ""
    assert yard.server.log("acme/app", BRANCH, "%an %cn") == "demo[bot] demo[bot]"


@pytest.mark.slow
async def test_an_agent_commits_under_its_new_name_once_its_clone_is_opened_again(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    renamed = replace(clone, author=Author("other[bot]", "other@bots.example.com"))
    await yard.open(renamed, fresh=False)

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status == 0, said
    assert yard.server.log("acme/app", BRANCH, "%an") == "other[bot]"


async def test_one_branch_is_not_pushed_to_twice_at_once(yard: Yard) -> None:
    inspector = Inspector(yard.git, yard.folder, yard.vault, BRANCH, BOT)
    updates = [Update("0" * 40, name * 40, f"refs/heads/{BRANCH}") for name in "ab"]

    assert inspector.objection(updates[:1]) == ""
    assert inspector.objection(updates) == f"Push one commit to {BRANCH} at a time."


async def test_a_reviewer_has_nothing_to_push_to(yard: Yard) -> None:
    head = yard.server.commit("acme/app", {"a.txt": "a\n"}, "Theirs", branch="feature")
    clone = yard.clone(way="detached", start="refs/heads/feature")
    opened = await yard.open(clone)

    status, said = await yard.do(
        clone,
        "echo x > a.txt; git commit -qam x; git push origin HEAD:refs/heads/feature",
    )

    assert opened is not None
    assert opened.commit == head
    assert status != 0
    assert "This session is read-only and has no branch to push to." in said
    assert yard.server.head("acme/app", "feature") == head


@pytest.mark.long
async def test_two_agents_work_on_one_branch_and_the_second_is_told_to_fetch(yard: Yard) -> None:
    yard.server.commit("acme/app", {"a.txt": "a\n"}, "Theirs", branch="feature")
    first, second = (yard.clone(n, way="existing", branch="feature") for n in (1, 2))
    await yard.open(first)
    await yard.open(second)
    await yard.do(first, "echo 1 > one; git add .; git commit -qm One; git push")

    status, said = await yard.do(second, "echo 2 > two; git add .; git commit -qm Two; git push")
    assert status != 0
    assert "feature has moved on since you fetched it" in said
    status, said = await yard.do(second, "git pull -q --rebase origin feature && git push")

    assert status == 0, said
    assert yard.server.show("acme/app", "feature", "one") == "1"
    assert yard.server.show("acme/app", "feature", "two") == "2"


async def test_the_remotes_own_refusal_reaches_the_agent(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    hook = yard.server.path("acme/app") / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho 'protected by policy from {WRITE}' >&2\nexit 1\n")
    hook.chmod(0o755)

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status != 0
    assert "The remote rejected the push: protected by policy" in said
    assert WRITE not in said
    assert yard.sent == []


async def test_a_token_that_only_reads_does_not_push(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.tokens.value = READ

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status != 0
    assert "The remote rejected the push" in said
    assert READ not in said


@pytest.mark.slow
async def test_a_push_that_was_cut_off_after_the_remote_took_it_is_simply_repeated(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")
    gate = yard.folder / "gates" / "1-demo" / "repository.git"
    git(gate, "update-ref", "-d", f"refs/heads/{BRANCH}")

    status, said = await yard.do(clone, "git push")

    assert status == 0, said
    assert len(set(yard.sent)) == 1


async def test_no_push_is_taken_while_the_gate_is_closed(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.checkouts.close(clone.folder)
    status, said = await yard.do(clone, "git push --dry-run")
    await yard.open(clone, fresh=False)

    again, said_then = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status != 0, said
    assert again == 0, said_then
