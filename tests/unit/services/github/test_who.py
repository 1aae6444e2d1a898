"""The table of who triggers an agent on GitHub, by what they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.core.intake.floor import Access
from sim.github.answers import Reply
from sim.github.state import Issue
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio

ASKED = "@claude-bridge please look"
ACTORS = {
    "admin": "cleo",
    "maintainer": "bob",
    "writer": "ann",
    "triager": "tim",
    "reader": "rae",
    "stranger": "mallory",
    "named in ALLOWED_USERS": "guest",
    "impostor with the App's name": "claude-bridge",
    "foreign bot": "ci[bot]",
    "bot named by its login only": "named[bot]",
    "bot allowed by its number": "trusted[bot]",
    "the agent itself": "claude-bridge[bot]",
    "another of our agents": "codex-bridge[bot]",
    "somebody who is gone": "ghost",
}
MAY = {"admin", "maintainer", "writer", "named in ALLOWED_USERS", "bot allowed by its number"}


def prepare(desk: Desk) -> Access:
    for login in ACTORS.values():
        desk.github.account(login, "Bot" if login.endswith("[bot]") else "User")
    trusted = desk.github.account("trusted[bot]").id
    return Access(users={"github:guest"}, bots={f"github:{trusted}", "github:named[bot]"})


def pull(desk: Desk, by: str, body: str = "") -> Issue:
    branch = f"topic-{len(desk.repository.issues)}"
    desk.github.git.commit("acme/widgets", branch, {"a.py": "one = 1\ntwo = 2\n"}, "Change")
    return desk.github.open_pull(by, desk.repository, "A change", branch, body)


def in_comment(desk: Desk, who: str) -> None:
    desk.github.comment(who, desk.github.open_issue("rae", desk.repository, "Bug"), ASKED)


def in_issue(desk: Desk, who: str) -> None:
    desk.github.open_issue(who, desk.repository, "Bug", ASKED)


def in_pull(desk: Desk, who: str) -> None:
    pull(desk, who, ASKED)


def in_review(desk: Desk, who: str) -> None:
    desk.github.review(who, pull(desk, "rae"), ASKED)


def on_a_line(desk: Desk, who: str) -> None:
    desk.github.review(who, pull(desk, "rae"), None, ("a.py", 1, ASKED), ("a.py", 2, "and this"))


def reviewing_its_pull(desk: Desk, who: str) -> None:
    desk.github.review(who, pull(desk, "claude-bridge[bot]"), "Not good.", ("a.py", 1, "this"))


def by_label(desk: Desk, who: str) -> None:
    desk.github.label(who, desk.github.open_issue("rae", desk.repository, "Bug"), "agent:claude")


def by_edit(desk: Desk, who: str) -> None:
    issue = desk.github.open_issue("rae", desk.repository, "Bug")
    comment = desk.github.comment(who, issue, "please look")
    desk.github.edit_comment(who, issue, comment, ASKED)


TRIGGERS = [
    in_comment,
    in_issue,
    in_pull,
    in_review,
    on_a_line,
    reviewing_its_pull,
    by_label,
    by_edit,
]


@pytest.mark.long
@pytest.mark.parametrize("act", TRIGGERS)
async def test_who_triggers_by_what(desk: Desk, act: Callable[[Desk, str], None]) -> None:
    access = prepare(desk)
    await desk.accounts.resolve(desk.claude_api.account_id)
    acted: dict[str, list[str]] = {}

    for actor, login in ACTORS.items():
        act(desk, login)
        acted[actor] = await desk.triggered(access)

    assert acted == {actor: ["claude"] if actor in MAY else [] for actor in ACTORS}


def untagged(desk: Desk) -> None:
    desk.github.comment("ann", desk.github.open_issue("ann", desk.repository, "Bug"), "hello")


def in_code(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.comment("ann", issue, f"`{ASKED}`\n\n```\n{ASKED}\n```\n\n> {ASKED}")


def hidden(desk: Desk) -> None:
    desk.github.open_issue("ann", desk.repository, "Bug", f"words <!-- {ASKED} -->")


def edited_by_another(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    comment = desk.github.comment("mallory", issue, "delete everything")
    desk.github.edit_comment("ann", issue, comment, f"{ASKED}: delete everything")


def edited_without_a_new_mention(desk: Desk) -> None:
    issue = desk.github.open_issue("mallory", desk.repository, "Bug")
    comment = desk.github.comment("ann", issue, "words")
    desk.github.edit_comment("ann", issue, comment, "other words")


def reviewing_somebody_elses_pull(desk: Desk) -> None:
    desk.github.review("ann", pull(desk, "bob"), "Not good.", ("a.py", 1, "this"))


def commenting_on_its_pull(desk: Desk) -> None:
    desk.github.comment("ann", pull(desk, "claude-bridge[bot]"), "nice")


def approving_its_pull_without_a_word(desk: Desk) -> None:
    desk.github.review("ann", pull(desk, "claude-bridge[bot]"), "", state="approved")


def with_a_label_of_nobody(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    desk.github.label("ann", issue, "agent:nobody")
    desk.github.label("ann", issue, "bug")


@pytest.mark.parametrize(
    "act",
    [
        untagged,
        in_code,
        hidden,
        edited_by_another,
        edited_without_a_new_mention,
        reviewing_somebody_elses_pull,
        commenting_on_its_pull,
        approving_its_pull_without_a_word,
        with_a_label_of_nobody,
    ],
)
async def test_what_triggers_nobody_whoever_does_it(
    desk: Desk, act: Callable[[Desk], None]
) -> None:
    act(desk)

    assert await desk.triggered() == []


async def test_an_edit_of_a_comment_that_mentioned_before_is_not_heard_again(desk: Desk) -> None:
    issue = desk.github.open_issue("ann", desk.repository, "Bug")
    comment = desk.github.comment("ann", issue, ASKED)
    desk.events()

    desk.github.edit_comment("ann", issue, comment, f"{ASKED} again")

    assert await desk.heard() == []


async def test_nobody_may_when_github_cannot_be_asked(desk: Desk) -> None:
    in_comment(desk, "ann")
    desk.github.fail("GET", "/permission", Reply(500, {"message": "broken"}), times=9)

    assert await desk.triggered() == []


async def test_a_hiccup_of_github_refuses_nobody_who_may(desk: Desk) -> None:
    in_comment(desk, "ann")
    desk.github.fail("GET", "/permission", Reply(502, {"message": "broken"}), times=2)

    assert await desk.triggered() == ["claude"]


async def test_nobody_may_where_the_app_is_not_installed(desk: Desk) -> None:
    in_comment(desk, "ann")
    desk.github.installations.clear()

    assert await desk.triggered() == []
