"""Linear together with GitHub: an assigned issue becomes a pull request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.github import Hub
from tests.support.linear import LinearWorld


@pytest.mark.long
def test_an_assigned_issue_becomes_a_pull_request_that_the_session_leads_to(tmp_path: Path) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
        with LinearWorld(tmp_path, settings=settings) as world:
            hub.call(world.bridge)
            session = world.assign("plan look; change", "write login.txt fixed", "say It is fixed.")
            world.wait_status(session, "awaitingInput")
            world.linear.pick(session, world.ann, "Allow once")
            world.wait_end(session)
            world.linear.wait(lambda: bool(session.urls))

    [pull] = hub.pulls()
    first, *_ = session.activities
    assert (first.type, first.ephemeral) == ("thought", True)
    assert [step["status"] for step in session.plan] == ["completed", "completed"]
    assert any("login.txt" in str(action.content) for action in session.of_type("action"))
    assert [each["label"] for each in session.urls] == ["Pull request"]
    assert session.urls[0]["url"].endswith(f"/acme/widgets/pull/{pull.number}")
    assert len(session.of_type("response")) == 1
    assert "It is fixed." in session.response
    assert session.issue.state.type == "started"
    assert hub.file(pull, "login.txt") == "fixed"
    assert world.linear.faults == []


@pytest.mark.long
def test_an_agent_reviews_on_linear_what_another_pushed_for_the_issue(tmp_path: Path) -> None:
    agents = ("claude", "codex")
    with Hub(tmp_path, agents) as hub:
        settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
        with LinearWorld(
            tmp_path, agents=agents, settings=settings, entry={"mode": "free"}
        ) as world:
            hub.call(world.bridge)
            first = world.assign("write login.txt fixed")
            world.wait_end(first)
            world.linear.reply(first, world.ann, "agent codex")
            world.linear.wait(lambda: "codex is not available here: on Linear every" in str(first))
            push = "run cat login.txt; git push origin HEAD:refs/heads/mine 2>&1"
            second = world.linear.mention(
                first.issue, world.apps["codex"], world.ann, f"review this\n{push}"
            )
            world.wait_end(second)

    assert "fixed" in second.response
    assert "This session is read-only and has no branch to push to." in second.response
    [(told,)] = world.bridge.rows("select prompt from turn where prompt like '%review this%'")
    assert "+fixed" in told
    assert len(hub.pulls()) == 1
