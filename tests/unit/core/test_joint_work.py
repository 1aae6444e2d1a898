"""Two agents on one branch, with real git: what comes along, what stays, and what is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.repositories.joint_work import DIFF_CHARACTERS, SharedWork
from app.features.delegation.store import DelegationStore
from app.model.delegation import DelegationLimits, NewDelegation, WorkspaceKind
from app.model.proposals import Work
from tests.support.agent_values import make_agent
from tests.support.pair import ANN, BRANCH, Pair, pair
from tests.support.yard import SECRET


def words(joined: SharedWork) -> Sequence[str]:
    """List what an agent is told."""
    return (*joined.notes, *(text for _, text in joined.data))


@pytest.mark.long
async def test_what_was_left_uncommitted_comes_along_and_both_push_to_one_branch(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path) as here:
        _, folder = await here.begin("demo")
        (folder / "left.txt").write_text("unfinished")
        await here.provider.close(here.session("demo").id)
        await here.hand_to("codex")

        joined, taken = await here.begin("codex")

        assert (taken / "left.txt").read_text() == "unfinished"
        assert taken != folder
        assert joined.told == ""
        assert "You take over from Demo." in joined.notes[0]
        await here.end("codex", more="by codex")
        assert here.yard.server.show("acme/app", BRANCH, "more.txt") == "by codex"
        names = here.yard.server.log("acme/app", BRANCH, "%an")
        assert "codex[bot]" in names
        assert await here.begin("codex") == (SharedWork(), taken)

        await here.hand_to("demo")
        back, again = await here.begin("demo")
        assert again == folder
        assert (folder / "more.txt").read_text() == "by codex"
        assert "Codex pushed to your branch" in back.notes[0]
        assert "codex[bot]: Do it" in back.data[0][1]


async def test_work_that_is_never_shipped_stays_and_that_is_said(tmp_path: Path) -> None:
    async with pair(tmp_path) as here:
        here.agents["demo"] = make_agent("demo", ship="none")
        _, folder = await here.begin("demo")
        (folder / "left.txt").write_text("unfinished")
        await here.provider.close(here.session("demo").id)
        await here.hand_to("codex")

        joined, taken = await here.begin("codex")

        assert joined.told == "Not taken along from Demo: 1 uncommitted change."
        assert not (taken / "left.txt").exists()
        assert (folder / "left.txt").exists()


@pytest.mark.long
async def test_who_has_changes_in_the_way_is_told_to_merge(tmp_path: Path) -> None:
    async with pair(tmp_path) as here:
        await here.begin("demo")
        await here.end("demo", one="by demo")
        await here.hand_to("codex")
        await here.begin("codex")
        await here.end("codex", one="by codex")
        await here.hand_to("demo")
        folder = here.provider.folder(here.session("demo"))
        assert folder is not None
        (folder / "one.txt").write_text("not committed")

        joined, _ = await here.begin("demo")

        assert "merge that commit before you push" in joined.notes[0]
        assert (folder / "one.txt").read_text() == "not committed"


@pytest.mark.long
async def test_a_review_reads_the_branch_and_its_diff_without_a_branch_to_push_to(
    tmp_path: Path,
) -> None:
    async with pair(tmp_path) as here:
        await here.begin("demo")
        await here.end("demo", one="first")

        joined, folder = await here.begin("codex", "@codex review this")
        assert (folder / "one.txt").read_text() == "first"
        assert f"Review {BRANCH} by Demo" in joined.notes[0]
        assert "+first" in joined.data[0][1]
        assert here.provider.describe(here.session("codex")).branch == ""
        await here.end("codex", mine="scribbled")
        assert here.yard.server.branches("acme/app") == [BRANCH, "main"]

        await here.begin("demo")
        await here.end("demo", one="second" * DIFF_CHARACTERS)
        again, same = await here.begin("codex", "review again")
        assert same == folder
        assert (folder / "one.txt").read_text().startswith("second")
        assert len(again.data[0][1]) < DIFF_CHARACTERS + 100
        assert again.data[0][1].endswith("the rest of the diff is in the clone]")


@pytest.mark.long
async def test_who_has_a_branch_reviews_another_without_leaving_it(tmp_path: Path) -> None:
    async with pair(tmp_path) as here:
        await here.begin("demo")
        await here.end("demo", one="of demo")
        _, folder = await here.begin("codex")
        await here.end("codex", two="of codex")

        joined, same = await here.begin("codex", "review this")

        assert same == folder
        assert "Your own folder stays as it is" in joined.notes[0]
        assert "+of demo" in joined.data[0][1]
        assert not (folder / "one.txt").exists()


@pytest.mark.parametrize("text", ["review this", "review PR #7", "review this and fix it"])
async def test_nothing_to_review_is_a_turn_as_usual(tmp_path: Path, text: str) -> None:
    async with pair(tmp_path) as here:
        joined, _ = await here.begin("codex", text)

        assert joined == SharedWork()
        assert here.provider.describe(here.session("codex")).branch == "agent/codex/web-t1"


@pytest.mark.long
async def test_a_diff_with_a_secret_loses_it_before_an_agent_reads_it(tmp_path: Path) -> None:
    async with pair(tmp_path) as here:
        await here.begin("demo")
        await here.end("demo", one="first")
        here.yard.server.commit("acme/app", {"leak.txt": f"{SECRET}\n"}, "Leak", branch=BRANCH)

        joined, _ = await here.begin("codex", "review this")

        assert "leak.txt" in joined.data[0][1]
        assert not any(SECRET in each for each in words(joined))


def errand(here: Pair, workspace: WorkspaceKind) -> NewDelegation:
    """Have demo ask codex to do something."""
    demo = here.session("demo").id
    return NewDelegation("spawn", "codex", demo, None, "do it", ANN, workspace=workspace)


@pytest.mark.long
@pytest.mark.parametrize(
    ("workspace", "seen", "branch"),
    [
        ("new-branch", False, "agent/codex/agents-1-do-it"),
        ("same-branch", True, BRANCH),
        ("read-only", True, ""),
        ("", True, ""),
    ],
)
async def test_an_agent_that_was_asked_sees_and_pushes_what_was_said(
    tmp_path: Path, workspace: WorkspaceKind, seen: bool, branch: str
) -> None:
    async with pair(tmp_path) as here:
        await here.begin("demo")
        await here.end("demo", one="of demo")
        begun = await here.stores.open(DelegationStore).begin(
            errand(here, workspace), DelegationLimits()
        )
        assert begun.delegation is not None
        child = here.stores.sessions.session(begun.delegation.session)
        assert child is not None

        await here.provider.join(child, here.target, ["do it"])
        folder = (await here.provider.open(child, here.target)).folder

        assert (folder / "one.txt").exists() is seen
        assert here.provider.view(child, here.target).branch == branch
        (folder / "two.txt").write_text("of codex")
        await here.provider.ship(child, here.target, Work("Do it", ()))
        await here.provider.close(child.id)
        pushed = {BRANCH, "main", branch} - {""}
        assert set(here.yard.server.branches("acme/app")) == pushed
        joined, own = await here.begin("demo")
        assert (own / "two.txt").exists() is (branch == BRANCH)
        assert bool(joined.notes) is (branch == BRANCH)


@pytest.mark.long
@pytest.mark.parametrize(
    ("workspace", "branch", "base"),
    [
        ("new-branch", "agent/codex/agents-1-do-it", "topic"),
        ("same-branch", "topic", "main"),
        ("read-only", "", "main"),
    ],
)
async def test_an_agent_that_was_given_a_branch_works_on_it_from_it_or_reads_it(
    tmp_path: Path, workspace: WorkspaceKind, branch: str, base: str
) -> None:
    async with pair(tmp_path) as here:
        here.yard.server.commit("acme/app", {"docs/topic.txt": "t"}, "Topic", branch="topic")
        await here.begin("demo")
        new = replace(errand(here, workspace), branch="topic", folder="docs")
        begun = await here.stores.open(DelegationStore).begin(new, DelegationLimits())
        assert begun.delegation is not None
        child = here.stores.sessions.session(begun.delegation.session)
        assert child is not None

        joined = await here.provider.join(child, here.target, ["do it"])
        opened = await here.provider.open(child, here.target)

        assert "topic" in joined.notes[0]
        assert (opened.start / "topic.txt").read_text() == "t"
        view = here.provider.view(child, here.target)
        assert (view.branch, view.base) == (branch, base)
        (opened.start / "more.txt").write_text("of codex")
        await here.provider.ship(child, here.target, Work("Do it", ()))
        again = await here.provider.join(child, here.target, ["go on"])
        await here.provider.close(child.id)
        pushed = {BRANCH, "main", "topic", branch} - {"", BRANCH}
        assert set(here.yard.server.branches("acme/app")) == pushed
        assert bool(again.notes) is (workspace == "read-only")
