"""Verifies that Linear sent a request just now, and rebuilds events that the bridge missed.

Only the timestamp inside the signed body counts. Linear repeats a delivery as the same bytes, so
a repeated one is always too old: an agent that misses the first must catch up. What Linear signed
is acknowledged even if it is not taken: Linear turns a webhook off that answers with errors.

The message of a rebuilt event has the id that its webhook would have given it, so that one that did
arrive is not handled again. The bridge never looks further back than it remembers its decisions.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field

from app.clock import Clock
from app.errors import (
    DeliveryRefused,
    DeliveryUnreadable,
)
from app.model.inbound import Delivery
from app.services.common.webhooks import (
    DeliveryStale,
    read_pages,
    verify_signature,
    verify_time,
)
from app.services.linear import events
from app.services.linear.api import LinearApi

logger = logging.getLogger(__name__)

BODY_BYTES: Final = 5 * 1024 * 1024
"""Size limit, as in Linear's own library."""
WINDOW_SECONDS: Final = 60.0
"""How far a delivery's time may be from ours, as in Linear's own library."""


@dataclass(frozen=True, slots=True)
class LinearIdentity:
    """An agent's user and organisation on Linear."""

    user: str
    organization: str


def verify(
    adapter: str,
    secret: str,
    headers: dict[bytes, bytes],
    body: bytes,
    *,
    now: float,
    identity: LinearIdentity | None = None,
) -> Delivery:
    """Check signature, time and recipient; the recipient later, if `identity` is unknown yet.

    Raises:
        DeliveryStale: it is genuine, but not from just now; acknowledged.
        DeliveryRefused: it is not from Linear, or, acknowledged, not for this agent.
    """
    if len(body) > BODY_BYTES:
        raise DeliveryRefused("the body is too large", status=413)
    given = headers.get(b"linear-signature", b"")
    signature = verify_signature(body, given, [secret.encode()], "LINEAR_WEBHOOK_SECRET")
    name = headers.get(b"linear-delivery", b"").decode("latin-1")
    if not name:
        raise DeliveryRefused("Linear-Delivery is missing", status=400)
    event = _object(body)
    _check_addressee(event, identity)
    stamp = event.get("webhookTimestamp")
    if isinstance(stamp, bool) or not isinstance(stamp, int | float):
        raise DeliveryStale("webhookTimestamp is missing")
    verify_time(stamp / 1000, now, window=WINDOW_SECONDS)
    return Delivery(
        adapter=adapter,
        delivery_id=name,
        signature=signature,
        headers={},
        body=body,
        received_at=now,
    )


def check_stored(delivery: Delivery, identity: LinearIdentity) -> None:
    """Check the recipient of a stored delivery: the agent's identity may have been unknown before.

    Raises:
        DeliveryUnreadable: it is for another agent.
    """
    try:
        _check_addressee(_object(delivery.body), identity)
    except DeliveryRefused as refused:
        raise DeliveryUnreadable(refused.reason) from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError:
        event = None
    if not isinstance(event, dict):
        raise DeliveryRefused("the body is not a JSON object", status=400)
    return event


def _check_addressee(event: dict[str, Any], identity: LinearIdentity | None) -> None:
    if identity is None:
        return
    if event.get("organizationId") != identity.organization:
        raise DeliveryRefused("webhook belongs to another organisation", status=200)
    if event.get("appUserId", identity.user) != identity.user:
        raise DeliveryRefused("webhook belongs to another agent", status=200)


LOOK_BACK_SECONDS: Final = 6 * 24 * 3600.0
"""How far back to look: a day less than decisions are remembered at least."""
PAGES: Final = 100
"""Pages to read at most: 2,500 sessions, the ones that changed last first."""

WAITING: Final = {"pending", "stale"}
"""States of a session that waits for the agent's first word; it is stale after half an hour."""
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


def find_missed(
    adapter: str,
    api: LinearApi,
    clock: Clock,
    identity: Callable[[], Awaitable[LinearIdentity]],
    since: float,
) -> AsyncGenerator[Delivery, None]:
    """Read what people did in the agent's sessions since a time, and all that wait for it.

    Raises:
        PostError: Linear does not say.
        ServiceRefused: not with this token.
    """
    reach = clock.now() - LOOK_BACK_SECONDS
    since = max(since, reach)

    async def read(cursor: str | None) -> tuple[Iterator[Delivery], str | None]:
        who, prompts = await identity(), prompts_since(since)
        data = await api.call("sessions", after=cursor, prompts=prompts)
        page = SessionPage(data, adapter, who, since=since, reach=reach, now=clock.now())
        return page.deliveries(), page.next

    return read_pages(read, pages=PAGES, what="Linear's sessions")


class SessionPage:
    """One page of the list of sessions, the one that changed last first."""

    def __init__(
        self,
        data: dict[str, Any],
        adapter: str,
        who: LinearIdentity,
        *,
        since: float,
        reach: float,
        now: float,
    ) -> None:
        connection = _Connection.model_validate(data["agentSessions"])
        self._adapter = adapter
        self._who = who
        self._now = now
        self._since = since
        listed = [(node, _Listed.model_validate(node)) for node in connection.nodes]
        self._recent = [
            (node, session) for node, session in listed if session.updated_at.timestamp() >= reach
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
            waits = session.status in WAITING
            is_new = waits or session.created_at.timestamp() >= self._since
            if is_open and self._was_taken_away(node):
                name = f"taken-away:{session.id}"
                notification = {"id": name, "issue": node["issue"]}
                yield self._event(
                    "issueUnassignedFromYou",
                    name,
                    session.updated_at,
                    type="AppUserNotification",
                    notification=notification,
                )
            elif is_new and session.status != "complete":
                began = session.created_at
                said = _comments(node)
                yield self._event("created", session.id, began, agentSession=shared, **said)
            for prompt in session.activities.in_order():
                at = datetime.fromisoformat(prompt["createdAt"])
                yield self._event(
                    "prompted", prompt["id"], at, agentSession=shared, agentActivity=prompt
                )

    def _was_taken_away(self, node: dict[str, Any]) -> bool:
        """Tell whether a session began with a delegation that has ended since."""
        issue, comment = node["issue"], node["comment"]
        if issue is None or comment is None or node["sourceComment"] is not None:
            return False
        if not events.is_placeholder(comment["body"]):
            return False
        return (issue.get("delegate") or {}).get("id") != self._who.user

    def _event(self, action: str, message_id: str, at: datetime, **parts: object) -> Delivery:
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
            sent_at=at.timestamp(),
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
