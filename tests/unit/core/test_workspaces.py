"""Names and words around workspaces: whatever people say, git gets plain names."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.keys import PlaceKey, SessionKey
from app.model.posts import Fact
from app.model.proposals import Work, branch_name, is_branch, slug
from app.model.types import Message, Speaker
from app.model.workspaces import WorkspaceView
from app.repos.wording import commit_message, proposal_body, subject

SESSION = SessionKey("web", "t1", "demo")
WEB = PlaceKey("web", "t1")


def said(text: str, name: str = "Ann", who: str = "ann") -> Message:
    return Message(Speaker(who, name), text, "m1", 0.0)


@pytest.mark.long
@given(st.text(max_size=80), st.text(min_size=1, max_size=40))
def test_every_place_and_title_give_a_branch_that_git_takes(title: str, place: str) -> None:
    branch = branch_name(SESSION, PlaceKey("web", place), title)

    assert is_branch(branch)
    assert branch.startswith("agent/demo/web")


@given(st.text(max_size=30))
def test_what_is_a_branch_for_us_is_one_for_git(name: str) -> None:
    # Asking git costs a process, so only what we would let pass is asked about.
    taken = is_branch(name) and "\ud800" not in name
    command = ["git", "check-ref-format", f"refs/heads/{name}"] if taken else ["true"]

    assert subprocess.run(command).returncode == 0


def test_a_branch_says_who_where_and_what() -> None:
    place = PlaceKey("slack", "C1:1700.1")

    assert branch_name(SESSION, place, "Fix: the Löwe's login!") == (
        "agent/demo/slack-c1-1700-1-fix-the-lowe-s-login"
    )
    assert slug("...", 40) == ""


def test_a_pull_request_without_words_names_the_agent_as_people_do() -> None:
    assert subject(Work("", []), "The Helper") == "Changes by The Helper"
    assert "asked The Helper for this" in proposal_body(Work("", []), SESSION, "The Helper")


def test_a_message_has_a_subject_the_words_and_who_asked() -> None:
    work = Work("", [said("Fix the login\nplease"), said("And hurry", "Bob", "bob@example.com")])

    assert commit_message(work, SESSION, "Demo") == (
        "Fix the login\n\nFix the login\nplease\n\nAnd hurry\n\n"
        "Co-authored-by: Ann <ann@noreply.agent-bridge.invalid>\n"
        "Co-authored-by: Bob <bob@example.com>\n"
        "Agent-Bridge-Session: web:t1:demo"
    )


@given(st.text(max_size=200), st.text(max_size=40), st.text(max_size=40))
def test_nobody_adds_a_trailer_by_name_or_title(title: str, name: str, who: str) -> None:
    message = commit_message(Work(title, [said("x", name, who)]), SESSION, "Demo")

    trailers = message.rpartition("\n\n")[2].split("\n")
    assert [line.partition(":")[0] for line in trailers] == [
        "Co-authored-by",
        "Agent-Bridge-Session",
    ]
    assert len(subject(Work(title, [said("x")]), "Demo")) <= 72


def test_what_was_sent_on_is_named_with_the_link_that_leads_to_it() -> None:
    view = WorkspaceView("clone", "acme/widgets", "agent/demo/fix")
    pushed = replace(view, sent="c0ffee")
    branch = Fact("acme/widgets, agent/demo/fix")

    assert WorkspaceView("empty").delivered == view.delivered == ()
    assert pushed.delivered == (branch,)
    assert replace(pushed, link="https://g.example/pull/1").delivered == (
        branch,
        Fact("Pull request", "https://g.example/pull/1"),
    )
