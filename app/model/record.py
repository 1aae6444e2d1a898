"""Records who decided on each tool call: a person, a rule, or no one; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.model import ask_wording as wording
from app.model.asks import Grant
from app.model.updates import Ask

Decided = Mapping[str, Any]

NOT_ASKED: Final[Decided] = {"how": "not asked"}
UNANSWERED: Final[Decided] = {"how": "unanswered", "allowed": False}


def by_rule(rule: object, *, allowed: bool) -> Decided:
    """Record the decision of an operator's rule."""
    return {"how": "rule", "rule": str(rule), "allowed": allowed}


def by_grant(grant: Grant) -> Decided:
    """Record a person's grant: who gave it, when, and what it covers."""
    return {
        "how": "grant",
        "grant": grant.id,
        "who": grant.granted_by,
        "at": grant.granted_at,
        "what": wording.granted(grant.kind, grant.extent, grant.subject),
        "allowed": True,
    }


def by_person(ask: Ask) -> Decided:
    """Record what a person answered."""
    kind = next((option.kind for option in ask.options if option.id == ask.answer), "")
    allowed = {"allow": True, "reject": False}.get(kind.partition("_")[0])
    return {
        "how": "person",
        "who": ask.answered_by or "",
        "answer": ask.answer_name,
        "allowed": allowed if ask.kind == "permission" else None,
    }
