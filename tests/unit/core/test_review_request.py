"""Which words ask for a review, and of what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.repositories.joint_work import ReviewRequest, find_review


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("review", None),
        ("Review this", None),
        ("@codex review this, please", None),
        ("@Claude Code: please review it again", None),
        ("could you review Claude's branch?", None),
        ("review the latest changes\nand be strict", None),
        ("please re-review.", None),
        ("review PR #42", 42),
        ("review #42 carefully", 42),
        ("review pull request 7", 7),
        ("review https://github.com/acme/app/pull/9/files", 9),
        ("@codex review this: is 12 enough?", None),
    ],
)
def test_a_review_is_asked_for(text: str, number: int | None) -> None:
    assert find_review([text]) == ReviewRequest(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "reviewers are late",
        "write a review of the book",
        "review the open issues and close the old ones",
        "review this and fix what you find",
        "review the code, then improve it",
        "fix what the review says",
        "say hello\nreview this",
    ],
)
def test_other_words_ask_for_none(text: str) -> None:
    assert find_review([text]) is None


def test_the_first_message_that_asks_counts() -> None:
    assert find_review(["hello", "review #3", "review #4"]) == ReviewRequest(3)


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    found = find_review([text, f"{'@a ' * 5000}{text}", f"@codex review #7 {text}"])

    assert found is None or found.number is None or found.number >= 0
