"""Rebuilds events that the bridge missed from the sessions that Linear lists.

The message of such an event has the id that its webhook would have given it, so that one that did
arrive is not handled again. The bridge never looks further back than it remembers its decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field

from app.model.inbound import Delivery
from app.services.linear import events
from app.services.linear.webhook import Identity

LOOK_BACK_SECONDS: Final = 6 * 24 * 3600.0
"""How far back to look: a day less than decisions are remembered at least."""
PAGES: Final = 100
"""Pages to read at most: 2,500 sessions, the ones that changed last first."""

ENDED: Final = {"complete", "error"}
"""States of a session in which no one works."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Named(_Model):
    id: str


class _Nodes(_Model):
    nodes: tuple[dict[str, Any], ...]

    def in_order(self) -> list[dict[str, Any]]:
        """Sort by time, oldest first: Linear lists the newest first."""
        written = reversed(self.nodes)
        return sorted(written, key=lambda node: datetime.fromisoformat(node["createdAt"]))


class _Listed(_Model):
    id: str
    status: str
    created_at: datetime = Field(alias="createdAt")
    updated_at: datetime = Field(alias="updatedAt")
    dismissed_at: datetime | None = Field(default=None, alias="dismissedAt")
    app_user: _Named = Field(alias="appUser")
    activities: _Nodes


class _PageInfo(_Model):
    has_next: bool = Field(alias="hasNextPage")
    cursor: str | None = Field(default=None, alias="endCursor")


class _Connection(_Model):
    nodes: tuple[dict[str, Any], ...]
    page: _PageInfo = Field(alias="pageInfo")


def prompts_since(since: float) -> dict[str, Any]:
    """Build a filter for the prompts that people wrote since a time."""
    return {
        "type": {"eq": "prompt"},
        "createdAt": {"gte": datetime.fromtimestamp(since, UTC).isoformat()},
    }


class Page:
    """One page of the list of sessions, the one that changed last first."""

    def __init__(
        self, data: dict[str, Any], adapter: str, who: Identity, *, since: float, now: float
    ) -> None:
        connection = _Connection.model_validate(data["agentSessions"])
        self._adapter = adapter
        self._who = who
        self._now = now
        self._since = since
        listed = [(node, _Listed.model_validate(node)) for node in connection.nodes]
        self._recent = [
            (node, session)
            for node, session in listed
            if session.updated_at.timestamp() >= self._since
        ]
        more = connection.page.has_next and len(self._recent) == len(listed)
        self.next = connection.page.cursor if more else None
        """The cursor of the next page, if it may hold anything new."""

    def deliveries(self) -> Iterator[Delivery]:
        """Yield what people did as events, in order."""
        for node, session in reversed(self._recent):
            if session.app_user.id != self._who.user or session.dismissed_at is not None:
                continue
            shared = _shared(node)
            is_open = session.status not in ENDED
            is_new = session.created_at.timestamp() >= self._since
            if is_open and self._was_taken_away(node):
                yield self._taken_away(session.id, node["issue"])
            elif is_new and session.status != "complete":
                yield self._event("created", session.id, agentSession=shared, **_comments(node))
            for prompt in session.activities.in_order():
                yield self._event(
                    "prompted", prompt["id"], agentSession=shared, agentActivity=prompt
                )

    def _was_taken_away(self, node: dict[str, Any]) -> bool:
        """Tell whether a session began with a delegation that has ended since."""
        issue, comment = node["issue"], node["comment"]
        if issue is None or comment is None or node["sourceComment"] is not None:
            return False
        if not events.is_placeholder(comment["body"]):
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


def _shared(node: dict[str, Any]) -> dict[str, Any]:
    """Write a session as its webhooks do."""
    source = node["sourceComment"]
    return {
        "id": node["id"],
        "creator": node["creator"],
        "comment": node["comment"] and _comment(node["comment"]),
        "sourceCommentId": source and source["id"],
        "issue": node["issue"],
    }


def _comments(node: dict[str, Any]) -> dict[str, object]:
    """List the earlier comments, and the one that mentions the agent if it is elsewhere."""
    issue, source = node["issue"], node["sourceComment"]
    said = [] if issue is None else _Nodes.model_validate(issue["comments"]).in_order()
    return {"previousComments": [_comment(each) for each in (*said, *([source] if source else ()))]}


def _comment(node: dict[str, Any]) -> dict[str, Any]:
    author = node["user"]
    return {"id": node["id"], "body": node["body"], "userId": author and author["id"]}
