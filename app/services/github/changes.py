"""From an edit or a deletion on GitHub to what a message says now; pure.

It never starts anything. Only authors change their words; whoever may delete takes them away. Of
all Apps that hear of it one speaks: that of the agent which is named first.
"""

from __future__ import annotations

from app.core.inbound import Changed
from app.markdown.hidden import strip
from app.services.github.envelope import opened
from app.services.github.events import is_own, speaker_of
from app.services.github.mentions import Identities
from app.services.github.names import Name, Spot
from app.services.github.naming import NameOf, as_given
from app.services.github.payloads import Account, Payload

CHANGES: dict[str, tuple[str, ...]] = {
    "issues": ("edited",),
    "pull_request": ("edited",),
    "issue_comment": ("edited", "deleted"),
}
"""The events that change what was said."""


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
    part = payload.comment if event == "issue_comment" else thing
    if thing is None or part is None or part.user is None or payload.repository is None:
        return None
    text = None if payload.action == "deleted" else strip(part.body or "").text
    if text is not None and not _is_edit_of_words(payload, part.user):
        return None
    before = payload.changes.body.text if payload.changes and payload.changes.body else ""
    named = us.mentioned(strip(before or part.body or "").text)
    if named[:1] != (agent,):
        return None
    spot = Spot(payload.repository.full_name, thing.number)
    comment = payload.comment
    name = Name("comment", comment.id) if comment is not None else Name("issue", thing.number)
    return Changed(spot.place, str(spot), str(name), speaker_of(part.user, us), text)


def _is_edit_of_words(payload: Payload, author: Account) -> bool:
    changed = payload.changes is not None and payload.changes.body is not None
    return changed and is_own(payload, author)
