"""What the record says about who decided."""

from __future__ import annotations

import pytest

from app.core.consent import record, wording
from app.core.updates import Ask, AskOption

OPTIONS = (AskOption("a", "Allow once", "allow_once"), AskOption("r", "Reject", "reject_once"))


def answered(answer: str, kind: str = "permission") -> Ask:
    return Ask(1, 1, 1, "x", OPTIONS, "answered", answer, "Ann", kind=kind)  # type: ignore[arg-type]  # a str of three


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        (record.by_person(answered("a")), "allowed by Ann"),
        (record.by_person(answered("r")), "rejected by Ann"),
        (record.by_person(answered("blue", "question")), "answered by Ann: blue"),
        (record.by_rule("allow kind read", allowed=True), "allowed by rule `allow kind read`"),
        (record.by_rule("deny kind edit", allowed=False), "rejected by rule `deny kind edit`"),
        (record.by_grant("edit", "Ann"), "allowed by Ann for this session"),
        (record.UNANSWERED, "not allowed: no answer"),
        (record.NOT_ASKED, ""),
        ({}, ""),
        (None, ""),
        ("odd", ""),
    ],
)
def test_a_decision_is_told_in_a_few_words(decided: object, words: str) -> None:
    assert wording.decision(decided) == words
