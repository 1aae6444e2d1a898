"""What GitHub says about an agent's pull request becomes news, and failed checks an excerpt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.errors import DeliveryUnreadable
from app.model.inbound import News
from app.model.keys import PlaceKey
from app.model.proposals import Checked, Examined, Remark
from app.model.workspaces import Judged
from app.services.github.checks import (
    LOG_CHARACTERS,
    RUN_CHARACTERS,
    CheckReport,
    end_of_log,
    examine,
    excerpt,
    read_checks,
)
from app.services.github.names import GitHubIdentity, Identities
from app.services.github.payloads import Annotation, CheckOutput, CheckRun
from sim.github.state import Check, Status
from tests.support import github_desk
from tests.support.github_desk import Desk
from tests.support.github_openapi import GOLDEN

pytestmark = pytest.mark.anyio

US = Identities.of(
    [GitHubIdentity("claude", "Codertocat", 21031067), GitHubIdentity("codex", "codex[bot]", 12)]
)


def example(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "news.json").read_text())[name]
    return found


def read(name: str, payload: dict[str, Any], agent: str = "claude") -> News | None:
    event, body = name.partition(".")[0], json.dumps(payload).encode()
    found = github_desk.read(event, body, US, agent)
    assert found is None or isinstance(found, News)
    return found


def test_events_as_github_sends_them_are_news() -> None:
    checked = read("check_suite.completed", example("check_suite.completed"))
    moved = read("push.", example("push.") | {"ref": "refs/heads/main", "deleted": False})
    closed = read("pull_request.closed", example("pull_request.closed"))

    assert checked is not None
    assert moved is not None
    assert closed is not None
    assert (checked.kind, checked.branch) == ("checked", "changes")
    assert checked.mark == example("check_suite.completed")["check_suite"]["head_sha"]
    assert (moved.kind, moved.branch, moved.mark) == ("moved", "main", example("push.")["after"])
    assert (closed.kind, closed.branch) == ("closed", "changes")
    assert closed.link.endswith("/pull/2")
    assert {each.repository for each in (checked, moved, closed)} == {"Codertocat/Hello-World"}


def test_what_is_no_news_for_an_agent_is_none() -> None:
    closed, suite = example("pull_request.closed"), example("check_suite.completed")
    ours = {**suite, "check_suite": {**suite["check_suite"], "app": {"slug": "codex"}}}
    fork = {**suite, "check_suite": {**suite["check_suite"], "head_branch": None}}
    gone = example("push.") | {"deleted": True}
    tag = example("push.") | {"ref": "refs/tags/v1"}

    assert read("pull_request.closed", closed, "codex") is None
    assert [read("check_suite", each) for each in (ours, fork)] == [None, None]
    assert [read("push", each) for each in (gone, tag)] == [None, None]
    assert read("check_suite", {**suite, "action": "requested"}) is None
    with pytest.raises(DeliveryUnreadable):
        github_desk.read("push", b"{", US)


def test_a_status_is_news_of_the_branch_whose_head_it_is_about() -> None:
    status = example("status.")
    older = status["branches"]
    mine = {"name": "agent/claude/1-fix", "commit": {"sha": status["sha"]}}
    theirs = {"name": "agent/codex/1-fix", "commit": {"sha": status["sha"]}}
    whole = status | {"branches": [*older, theirs, mine]}

    heard = read("status", whole)
    also = read("status", whole, "codex")

    assert heard is not None
    assert also is not None
    assert (heard.kind, heard.branch, heard.mark) == ("checked", mine["name"], status["sha"])
    assert (also.branch, also.repository) == (theirs["name"], "Codertocat/Hello-World")
    assert read("status", status) is None, "all branches have moved on"
    assert read("status", whole | {"branches": [theirs]}) is None
    assert read("status", whole | {"state": "pending"}) is None


def test_an_excerpt_is_short_and_plain() -> None:
    noisy = CheckOutput(title="\x1b[31mred\x1b[0m", summary="x" * 5_000, text="never seen")
    said = [
        CheckReport(
            CheckRun(id=1, name="build\n", conclusion="failure", output=noisy),
            [Annotation(path="a\x00.py", start_line=3, message="two\nlines")],
        ),
        CheckReport(CheckRun(id=2, name="lint", conclusion="timed_out"), log="x\n" * 5_000),
    ]

    text = excerpt(said)

    assert text.startswith("build: red (failure)\na .py:3: two lines\nxxx")
    assert "…\n\nlint (timed_out)\nx\nx\n" in text
    assert len(text) < RUN_CHARACTERS + LOG_CHARACTERS


def test_of_a_log_the_lines_are_quoted_that_lead_to_the_error() -> None:
    stamp = "2026-11-16T09:00:00.1234567Z "
    lines = [*(f"{stamp}step {number}" for number in range(100)), f"{stamp}##[error]exit code 1"]

    quoted = end_of_log("\ufeff" + "\n".join([*lines, f"{stamp}Post job cleanup."]))

    assert quoted.splitlines() == [*(f"step {n}" for n in range(81, 100)), "##[error]exit code 1"]
    assert end_of_log("") == ""
    assert len(end_of_log("y" * 5_000)) == LOG_CHARACTERS


async def checked(desk: Desk, commit: str) -> Checked | None:
    place = PlaceKey("github", "acme/widgets topic")
    heard = News("checked", place, "acme/widgets", "topic", commit)
    return await read_checks(desk.apis["claude"], heard, desk.directory.us)


async def test_checks_have_ended_when_none_of_others_runs(desk: Desk) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    assert pull.pull is not None
    commit = pull.pull.sha
    assert await checked(desk, commit) is None, "there are none"

    ours = Check(desk.apps["codex"], "codex", commit, 0.0, "in_progress")
    desk.repository.checks.append(ours)
    desk.github.check(pull, Check(None, "build", "", 0.0, "completed", "neutral"))
    assert await checked(desk, commit) == Checked(commit, pull.url)

    desk.github.push("ann", desk.repository, "topic", {"a.py": "two\n"})
    assert await checked(desk, commit) is None, "there is a later commit"


async def test_statuses_count_like_checks_and_those_that_wait_hold_back_no_failure(
    desk: Desk,
) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    assert pull.pull is not None
    commit = pull.pull.sha
    desk.github.report(pull, Status("ci/lint", "pending"))
    assert await checked(desk, commit) is None
    desk.github.report(pull, Status("ci/lint", "success"))
    assert await checked(desk, commit) == Checked(commit, pull.url), "there are no checks"

    desk.github.report(pull, Status("review", "pending"))
    desk.github.check(pull, Check(None, "build", "", 0.0, "in_progress"))
    assert await checked(desk, commit) is None
    desk.github.report(pull, Status("ci/test", "error", "2 of 9\n failed", "https://ci.example/7"))
    assert await checked(desk, commit) is None, "a check still runs"
    desk.github.check(pull, Check(None, "build", "", 0.0, "completed", "success"))

    assert await checked(desk, commit) == Checked(
        commit, pull.url, ("ci/test",), "ci/test (error)\n2 of 9\n failed\nhttps://ci.example/7"
    )
    desk.github.report(pull, Status("ci/test", "success"))
    assert await checked(desk, commit) is None, "somebody has to review it"
    desk.github.report(pull, Status("review", "success"))
    assert await checked(desk, commit) == Checked(commit, pull.url)


async def test_more_statuses_than_a_page_holds_are_all_read(desk: Desk) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    assert pull.pull is not None
    many = [Status(f"ci/{number}", "success", sha=pull.pull.sha) for number in range(100)]
    desk.repository.statuses += [*many, Status("ci/last", "failure", sha=pull.pull.sha)]

    found = await checked(desk, pull.pull.sha)

    assert found is not None
    assert found.failed == ("ci/last",)


async def test_an_app_that_may_not_see_statuses_goes_by_checks_alone(desk: Desk) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    desk.github.report(pull, Status("ci/test", "failure"))
    desk.github.check(pull, Check(None, "build", "", 0.0, "completed", "success"))
    del desk.apps["claude"].permissions["statuses"]
    assert pull.pull is not None

    assert await checked(desk, pull.pull.sha) == Checked(pull.pull.sha, pull.url)


async def test_an_app_that_may_not_see_checks_tells_nothing(desk: Desk) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    desk.github.check(pull, Check(None, "build", "", 0.0, "completed", "failure"))
    del desk.apps["claude"].permissions["checks"]
    assert pull.pull is not None

    assert await checked(desk, pull.pull.sha) is None


async def test_the_end_of_a_workflows_log_is_quoted_where_the_app_may_read_it(desk: Desk) -> None:
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    job = Check(None, "build", "", 0.0, "completed", "failure", log="boom\n##[error]exit code 1\n")
    desk.github.check(pull, job)
    assert pull.pull is not None

    found = await checked(desk, pull.pull.sha)
    assert found is not None
    assert found.excerpt == "build (failure)\nboom\n##[error]exit code 1"

    del desk.apps["claude"].permissions["actions"]
    desk.apis["claude"].forget("acme/widgets")
    found = await checked(desk, pull.pull.sha)
    assert found is not None
    assert found.excerpt == "build (failure)"


async def test_an_examination_has_all_that_checks_and_reviewers_say(desk: Desk) -> None:
    api, us = desk.apis["claude"], desk.directory.us
    desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    assert await examine(api, "acme/widgets", "topic", us) is None, "there is no pull request"
    pull = desk.github.open_pull("claude-bridge[bot]", desk.repository, "A change", "topic")
    assert pull.pull is not None
    desk.github.check(pull, Check(None, "lint", "", 0.0, "in_progress"))
    job = Check(None, "build", "", 0.0, "completed", "failure", log="boom\n##[error]exit code 1\n")
    desk.github.check(pull, job)
    desk.github.report(pull, Status("deploy", "pending"))
    desk.github.review("ann", pull, "Too short.", state="changes_requested")

    found = await examine(api, "acme/widgets", "topic", us)

    assert found == Examined(
        pull.pull.sha,
        pull.url,
        Judged("failed", "changes"),
        failed=("build",),
        running=("lint", "deploy"),
        excerpt="build (failure)\nboom\n##[error]exit code 1",
        remarks=(Remark("ann", "changes_requested", "Too short."),),
    )
    del desk.apps["claude"].permissions["statuses"]
    api.forget("acme/widgets")
    found = await examine(api, "acme/widgets", "topic", us)
    assert found is not None
    assert (found.judged.checks, found.running) == ("failed", ("lint",))
