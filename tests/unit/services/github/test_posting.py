"""Reviews of agents on GitHub: a verdict, comments on lines, each once and under its own App."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import RepositoryError
from app.model.proposals import ReviewFinding, Submission, Verdict
from sim.github.answers import Reply
from sim.github.state import Issue, Review
from tests.support.github_desk import BRANCH, Desk, Office

pytestmark = pytest.mark.anyio

FILE = "login.py"


@pytest.fixture
async def office(desk: Desk) -> Office:
    made = Office(desk, agents=("claude", "codex"))
    desk.github.git.commit("acme/widgets", BRANCH, {FILE: "a\nb\nc\n"}, "Log in")
    await made.propose()
    return made


def pull_of(desk: Desk) -> Issue:
    (pull,) = desk.repository.issues.values()
    return pull


def submission(office: Office, desk: Desk, verdict: Verdict = "request_changes") -> Submission:
    found = (
        ReviewFinding(FILE, 2, "@ann why?"),
        ReviewFinding(FILE, 99, "beyond"),
        ReviewFinding("no.py", 1, "none"),
    )
    pull = pull_of(desk).pull
    assert pull is not None
    return Submission(
        office.repository, "codex", BRANCH, pull.sha, verdict, "Two things.", found, "review:7"
    )


def reviews(desk: Desk) -> list[Review]:
    pull = pull_of(desk).pull
    assert pull is not None
    return pull.reviews


@pytest.mark.parametrize(
    ("verdict", "state"),
    [("approve", "approved"), ("request_changes", "changes_requested"), ("comment", "commented")],
)
async def test_a_verdict_becomes_a_review_with_comments_on_its_lines(
    desk: Desk, office: Office, verdict: Verdict, state: str
) -> None:
    link = await office.forge.review(submission(office, desk, verdict))

    [review] = reviews(desk)
    assert link == f"{pull_of(desk).url}#pullrequestreview-{review.id}"
    assert (review.state, review.user.login) == (state, "codex-bridge[bot]")
    assert "Two things." in (review.body or "")
    assert "`login.py:99`: beyond" in (review.body or "")
    assert "`no.py:1`: none" in (review.body or "")
    pull = pull_of(desk).pull
    assert pull is not None
    assert [(each.path, each.line, each.body) for each in pull.comments] == [
        (FILE, 2, "`@ann` why?")
    ]


@pytest.mark.parametrize("reply", [Reply(502, {"message": "Server Error"}), None])
async def test_a_review_is_submitted_once(desk: Desk, office: Office, reply: Reply | None) -> None:
    desk.github.fail("POST", "/reviews$", reply)

    first = await office.forge.review(submission(office, desk))
    again = await office.forge.review(submission(office, desk))

    assert first == again
    assert len(reviews(desk)) == 1


async def test_an_app_only_comments_on_its_own_pull_request(desk: Desk, office: Office) -> None:
    own = replace(submission(office, desk, "approve"), agent="claude")

    await office.forge.review(own)

    [review] = reviews(desk)
    assert review.state == "commented"
    assert (review.body or "").startswith("**Approved.**\n\nTwo things.")


async def test_a_review_of_a_commit_that_is_gone_is_submitted_without_lines(
    desk: Desk, office: Office
) -> None:
    await office.forge.review(replace(submission(office, desk), commit="0" * 40))

    [review] = reviews(desk)
    assert review.state == "changes_requested"
    assert "`login.py:2`: `@ann` why?" in (review.body or "")
    pull = pull_of(desk).pull
    assert pull is not None
    assert pull.comments == []


async def test_without_words_a_request_for_changes_still_has_some(
    desk: Desk, office: Office
) -> None:
    await office.forge.review(replace(submission(office, desk), body="", findings=()))

    assert "No further remarks." in (reviews(desk)[0].body or "")


async def test_without_a_pull_request_or_an_app_nothing_is_submitted(
    desk: Desk, office: Office
) -> None:
    assert await office.forge.review(replace(submission(office, desk), branch="other")) is None
    assert await office.forge.review(replace(submission(office, desk), agent="gemini")) is None


async def test_what_github_refuses_is_an_error(desk: Desk, office: Office) -> None:
    refused = Reply(403, {"message": "Resource not accessible by integration"})
    desk.github.fail("POST", "/reviews$", refused, times=9)

    with pytest.raises(RepositoryError, match="cannot be reviewed on GitHub"):
        await office.forge.review(submission(office, desk))
