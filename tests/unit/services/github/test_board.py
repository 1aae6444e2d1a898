"""Turns as checks: what their buttons say, and what is made of one that was pressed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DeliveryUnreadable
from app.model.inbound import Answered, Chore, Heard, Inbound
from app.model.posts import PostContent
from app.model.types import Speaker
from app.model.updates import AskOption
from app.services.github import checks as board
from app.services.github.events import Rerun
from app.services.github.names import GitHubIdentity, Identities
from tests.support import github_desk

US = Identities.of(
    [
        GitHubIdentity("claude", "claude-bridge[bot]", 11),
        GitHubIdentity("codex", "codex-bridge[bot]", 12),
    ]
)
KINDS = ("allow_once", "allow_always", "reject_once", "reject_always", "")


def pressed(identifier: str, **more: Any) -> bytes:
    payload = {
        "action": "requested_action",
        "check_run": {"id": 5, "external_id": "7:ab-1", "app": {"slug": "claude-bridge"}},
        "requested_action": {"identifier": identifier},
        "repository": {"id": 1, "full_name": "acme/widgets"},
        "sender": {"id": 3, "login": "ann"},
    }
    return json.dumps(payload | more).encode()


def read(body: bytes, agent: str = "claude") -> Inbound | None:
    return github_desk.read("check_run", body, US, agent)


@given(
    st.integers(1, 999_999),
    st.lists(st.builds(AskOption, st.text(min_size=1), st.text(), st.sampled_from(KINDS))),
    st.text(),
)
def test_whatever_is_asked_makes_buttons_that_github_takes(
    ask: int, options: list[AskOption], text: str
) -> None:
    content = PostContent(kind="ask", state="open", text=text, ask=ask, options=tuple(options))

    shown = board.asking(content)

    actions = shown["actions"]
    assert len(actions) == min(3, len(options) + 1)
    assert (shown["status"], shown["conclusion"]) == ("completed", "neutral")
    assert all(0 < len(each["label"]) <= 20 for each in actions)
    assert all(0 < len(each["description"]) <= 40 for each in actions)
    assert all(0 < len(each["identifier"]) <= 20 for each in actions)
    assert shown["output"]["summary"]


def test_of_many_options_those_have_buttons_that_decide_once() -> None:
    kinds = ("allow_always", "reject_always", "allow_once", "reject_once")
    options = tuple(AskOption(kind, kind, kind) for kind in kinds)

    shown = board.asking(PostContent(kind="ask", text="?", ask=9, options=options))

    named = [(each["label"], each["identifier"]) for each in shown["actions"]]
    assert named == [
        ("allow_always", "ask-9-0"),
        ("allow_once", "ask-9-2"),
        ("reject_once", "ask-9-3"),
    ]
    assert "More answers" in shown["output"]["summary"]


def test_a_button_that_was_pressed_is_an_answer_or_a_stop_of_whoever_pressed_it() -> None:
    ann = Speaker("ann", "ann")

    assert read(pressed("ask-9-2")) == Answered(9, 2, ann)
    stop = read(pressed("stop"))
    assert isinstance(stop, Heard)
    assert (stop.external, stop.spoken, stop.mentions) == ("acme/widgets:7", "stop", ("claude",))
    assert (stop.speaker, stop.message_id) == (ann, "stop-5-3")


@pytest.mark.parametrize(
    "body",
    [
        pressed("ask-9"),
        pressed("ask-9-2-1"),
        pressed("drop"),
        pressed("stop", action="completed"),
        pressed("stop", check_run={"id": 5, "external_id": "x", "app": {"slug": "claude-bridge"}}),
        pressed("stop", check_run={"id": 5, "external_id": "7:ab-1", "app": {"slug": "other"}}),
    ],
)
def test_what_is_no_button_of_ours_leads_to_nothing(body: bytes) -> None:
    assert read(body) is None


@pytest.mark.parametrize(("slug", "commit"), [("claude-bridge", "c0ffee"), ("other", "c0ffee")])
def test_only_its_own_checks_are_run_again_by_an_app(slug: str, commit: str) -> None:
    run = {"id": 5, "head_sha": commit, "app": {"slug": slug}}
    again = Chore(Rerun("acme/widgets", commit)) if slug == "claude-bridge" else None

    assert read(pressed("", action="rerequested", check_run=run)) == again
    body = pressed("", action="rerequested", check_suite=run)
    assert github_desk.read("check_suite", body, US) == again


def test_a_button_is_its_own_agents() -> None:
    assert read(pressed("stop"), "codex") is None


@pytest.mark.parametrize("body", [b"{", pressed("stop", sender=None)])
def test_what_nobody_pressed_is_unreadable(body: bytes) -> None:
    with pytest.raises(DeliveryUnreadable):
        read(body)
