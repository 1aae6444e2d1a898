"""From an edit or a deletion on GitHub to what a message says now; pure.

It never starts anything. Only authors change their words; whoever may delete takes them away. Of
all Apps that hear of it one speaks: that of the agent which is named first, else of the one whose
pull request it is about. A review is one message, so what it says now takes all of its pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.inbound import Changed
from app.markdown.hidden import strip
from app.services.github.envelope import opened
from app.services.github.events import is_own, opened_by, review_text, speaker_of
from app.services.github.mentions import Identities
from app.services.github.names import Name, Spot
from app.services.github.naming import NameOf, as_given
from app.services.github.payloads import Account, Comment, Payload, Pull, Review

CHANGES: dict[str, tuple[str, ...]] = {
    "issues": ("edited",),
    "pull_request": ("edited",),
    "issue_comment": ("edited", "deleted"),
    "pull_request_review": ("edited",),
    "pull_request_review_comment": ("edited", "deleted"),
}
"""The events that change what was said."""


@dataclass(frozen=True, slots=True)
class Piece:
    """That a piece of a review changed, whose other pieces did not come with it."""

    review: int
    named: tuple[str, ...]
    """The agents that the piece named before."""
    opener: str | None
    """The agent whose pull request it is about."""


def read(
    event: str,
    body: bytes,
    agent: str,
    us: Identities,
    installation: str | None = None,
    name_of: NameOf = as_given,
) -> Changed | None:
    """Understand an event; None if it changes nothing that this agent may have been told.

    Raises:
        DeliveryUnreadable: it is not what GitHub sends.
    """
    payload = opened(event, body, CHANGES, installation, name_of)
    if payload is None:
        return None
    thing = payload.issue or payload.pull_request
    part = payload.review or payload.comment or thing
    if thing is None or part is None or part.user is None or payload.repository is None:
        return None
    text = None if payload.action == "deleted" else strip(part.body or "").text
    if text is not None and not _is_edit_of_words(payload, part.user):
        return None
    before = payload.changes.body.text if payload.changes and payload.changes.body else ""
    named = us.mentioned(strip(before or part.body or "").text)
    spot, speaker = Spot(payload.repository.full_name, thing.number), speaker_of(part.user, us)
    if isinstance(thing, Pull) and (number := _review_of(payload)) is not None:
        name, piece = Name("review", number), Piece(number, named, opened_by(thing, us))
        return Changed(spot.place, str(spot), str(name), speaker, text, piece)
    if named[:1] != (agent,):
        return None
    comment = payload.comment
    name = Name("comment", comment.id) if comment is not None else Name("issue", thing.number)
    return Changed(spot.place, str(spot), str(name), speaker, text)


def whole(
    changed: Changed,
    piece: Piece,
    review: Review | None,
    comments: Sequence[Comment],
    agent: str,
    us: Identities,
) -> Changed | None:
    """Say what a review says now that a piece of it changed; None if another App says it."""
    text = review_text(review, comments) if review is not None else ""
    named = (*piece.named, *us.mentioned(text), *filter(None, (piece.opener,)))
    return replace(changed, text=text or None) if named[:1] == (agent,) else None


def _review_of(payload: Payload) -> int | None:
    if payload.review is not None:
        return payload.review.id
    return payload.comment.pull_request_review_id if payload.comment is not None else None


def _is_edit_of_words(payload: Payload, author: Account) -> bool:
    changed = payload.changes is not None and payload.changes.body is not None
    return changed and is_own(payload, author)
