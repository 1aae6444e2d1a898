"""Recognises a request to review: "review this", "please review PR #42"; pure.

It has to begin the first line. Words that also ask for changes are no review: the agent would have
nothing to push to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BEGINNING = 1000
"""Characters of a message that are read: more than a line that asks for a review has."""

_ASKS = re.compile(
    r"""\s*
    (?:@\S+(?:\ \S+){0,2}?[,:]?\s+){0,3}  # mentions; a name for people may have several words
    (?:(?:please|pls|can\ you|could\ you|would\ you|hey|hi|now|then)[,:]?\s+){0,3}
    (?:re-?)?review\b
    (?P<rest>[^\n]*)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OBJECT = re.compile(
    r"""\s*(?:
        $|[.!?:;,(]|
        (?:this|that|it|these|those|again|please|now)\b|
        (?:the\ |this\ |that\ )?(?:pr|pull(?:\ |-)?request)\b|\#\d|\S*/pull/\d|
        (?:the|my|our|his|her|their|its|all|latest|these|\S+'s)\ (?:\w+\ ){0,2}?
        (?:changes?|diff|branch|patch|work|code|commits?|fix|implementation|pr)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_CHANGES = re.compile(
    r"(?:\band|\bthen|[,;&])\s+(?:\w+\s+){0,2}?"
    r"(?:fix|change|edit|improve|update|rewrite|implement|push|merge|apply|address|add|write|"
    r"refactor|resolve|finish|correct)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:#|/pull/|\bpr\s+|\bpull.?request\s+)(\d{1,9})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A wish to have something reviewed."""

    number: int | None = None
    """The number of a pull request, if the words name one."""


def find_review(texts: Iterable[str]) -> ReviewRequest | None:
    """Find the first of some messages that asks for a review; None if none does."""
    for text in texts:
        asks = _ASKS.match(text[:BEGINNING])
        if asks is None or _CHANGES.search(asks["rest"]) or not _OBJECT.match(asks["rest"]):
            continue
        number = _NUMBER.search(asks["rest"])
        return ReviewRequest(None if number is None else int(number[1]))
    return None
