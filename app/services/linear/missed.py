"""What happened while nobody listened: sessions as Linear lists them, read as the events they were.

The message of such an event has the id that its webhook would have given it, so that whatever did
arrive is not decided on again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field

from app.core.inbound import Delivery
from app.services.linear import events
from app.services.linear.webhook import Identity

LOOK_BACK_SECONDS: Final = 7 * 24 * 3600.0
"""How far back is looked: as long as deliveries are remembered at least."""


ENDED: Final = {"complete", "error"}
"""How a session stands in which nobody is at work."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Named(_Model):
    id: str


class _Prompts(_Model):
    nodes: tuple[dict[str, Any], ...]


class _Listed(_Model):
    id: str
    status: str
    updated_at: datetime = Field(alias="updatedAt")
    dismissed_at: datetime | None = Field(default=None, alias="dismissedAt")
    app_user: _Named = Field(alias="appUser")
    activities: _Prompts


class _PageInfo(_Model):
    has_next: bool = Field(alias="hasNextPage")
    cursor: str | None = Field(default=None, alias="endCursor")


class _Connection(_Model):
    nodes: tuple[dict[str, Any], ...]
    page: _PageInfo = Field(alias="pageInfo")


class Page:
    """One page of the list of sessions, the one that changed last first."""

    def __init__(self, data: dict[str, Any], adapter: str, who: Identity, now: float) -> None:
        connection = _Connection.model_validate(data["agentSessions"])
        self._adapter = adapter
        self._who = who
        self._now = now
        listed = [(node, _Listed.model_validate(node)) for node in connection.nodes]
        self._recent = [
            (node, session)
            for node, session in listed
            if now - session.updated_at.timestamp() <= LOOK_BACK_SECONDS
        ]
        more = connection.page.has_next and len(self._recent) == len(listed)
        self.next = connection.page.cursor if more else None
        """Where the next page begins, if there may be anything new in it."""

    def deliveries(self) -> Iterator[Delivery]:
        """Make events of what people did, in the order in which they did it."""
        for node, session in reversed(self._recent):
            if session.app_user.id != self._who.user or session.dismissed_at is not None:
                continue
            shared = {key: node.get(key) for key in ("id", "creator", "comment", "issue")}
            is_open = session.status not in ENDED
            if is_open and self._was_taken_away(node):
                yield self._taken_away(session.id, node["issue"])
            elif session.status != "complete":
                yield self._event("created", session.id, agentSession=shared, **_comments(node))
            for prompt in session.activities.nodes:
                yield self._event(
                    "prompted", prompt["id"], agentSession=shared, agentActivity=prompt
                )

    def _was_taken_away(self, node: dict[str, Any]) -> bool:
        """Tell whether a session began with a delegation that has ended since."""
        issue, comment = node.get("issue"), node.get("comment")
        if issue is None or comment is None or not events.began_with_delegation(comment["body"]):
            return False
        return (issue.get("delegate") or {}).get("id") != self._who.user

    def _taken_away(self, session: str, issue: object) -> Delivery:
        name = f"taken-away:{session}"
        parts = {"type": "AppUserNotification", "notification": {"id": name, "issue": issue}}
        return self._event("issueUnassignedFromYou", name, **parts)

    def _event(self, action: str, message_id: str, **parts: object) -> Delivery:
        event = {
            "type": "AgentSessionEvent",
            "action": action,
            "appUserId": self._who.user,
            "organizationId": self._who.organization,
            **parts,
        }
        return Delivery(
            adapter=self._adapter,
            delivery_id=f"missed:{message_id}",
            signature=None,
            headers={},
            body=orjson.dumps(event),
            received_at=self._now,
        )


def _comments(node: dict[str, Any]) -> dict[str, object]:
    comments = (node.get("issue") or {}).get("comments") or {}
    return {"previousComments": comments.get("nodes") or []}
