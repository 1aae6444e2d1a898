"""What the record says about who decided."""

from __future__ import annotations

import pytest

from app.model import ask_wording as wording
from app.model.asks import NOT_ASKED, UNANSWERED, Grant, by_grant, by_person, by_rule
from app.model.keys import PlaceKey
from app.model.updates import Ask, AskOption

OPTIONS = (AskOption("a", "Allow once", "allow_once"), AskOption("r", "Reject", "reject_once"))


GRANT = Grant(
    id=7,
    session=1,
    agent="demo",
    place=PlaceKey("web", "t1"),
    kind="execute",
    extent="command",
    subject="npm test",
    granted_by="Ann",
    granted_at=1.0,
    expires_at=9.0,
    state="active",
)


def answered(answer: str, kind: str = "permission") -> Ask:
    return Ask(1, 1, 1, "x", OPTIONS, "answered", answer, "Ann", kind=kind)  # type: ignore[arg-type]  # a str of three


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        (by_person(answered("a")), "allowed by Ann"),
        (by_person(answered("r")), "rejected by Ann"),
        (by_person(answered("blue", "question")), "answered by Ann: blue"),
        (by_rule("allow kind read", allowed=True), "allowed by rule `allow kind read`"),
        (by_rule("deny kind edit", allowed=False), "rejected by rule `deny kind edit`"),
        (by_grant(GRANT), "allowed by Ann for this thread: `npm test`"),
        ({"how": "session", "who": "Ann"}, "allowed by Ann for this session"),
        (UNANSWERED, "nobody answered"),
        (NOT_ASKED, ""),
        ({}, ""),
        (None, ""),
        ("odd", ""),
    ],
)
def test_a_decision_is_told_in_a_few_words(decided: object, words: str) -> None:
    assert wording.decision(decided) == words
