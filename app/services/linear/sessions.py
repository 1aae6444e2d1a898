"""Tracks the sessions an agent works in, and moves their issues without overriding people.

Linear calls a session stale after half an hour of silence. An open ask does not count as silence.
If Linear refuses a change, the issue stays as it is: no post ever fails because of it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from app.errors import PostError, ServiceRefused
from app.model.posts import PostSend
from app.services.linear import events
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.render import SessionChange, ShownTurn

logger = logging.getLogger(__name__)


SILENCE_SECONDS: Final = 20 * 60.0
"""Silence after which a heartbeat is due: a few more tries fit into Linear's half hour."""
SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0
"""Pauses between progress updates: short at first, then longer, so that two hours of work cost
some sixty calls."""


@dataclass(slots=True)
class LinearTurn:
    """One turn, and how much of it Linear shows."""

    began: float
    shown: ShownTurn = field(default_factory=ShownTurn)
    due: float = 0.0
    """When its progress may be shown next."""

    def note_shown(self, now: float) -> None:
        """Note that progress was shown; the longer the turn takes, the later the next update."""
        pause = min(max((now - self.began) / 10, SHORTEST_SECONDS), LONGEST_SECONDS)
        self.due = now + pause


@dataclass(slots=True)
class LinearConversation:
    """One agent session."""

    spoke: float
    turns: dict[str, LinearTurn] = field(default_factory=dict)
    asks: set[str] = field(default_factory=set)
    accompanied: bool = False
    """Whether it is about work that goes on elsewhere."""
    line: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the agent speaks, so that no heartbeat follows its last message."""


class LinearPresence:
    """All sessions with a running turn or an open ask."""

    def __init__(self) -> None:
        self._conversations: dict[str, LinearConversation] = {}

    def at(self, session: str, now: float) -> LinearConversation:
        """Return what is known of a session."""
        return self._conversations.setdefault(session, LinearConversation(now))

    def spoke(self, session: str, now: float) -> None:
        """Note that Linear heard from the agent."""
        if (known := self._conversations.get(session)) is not None:
            known.spoke = now

    def is_busy(self, session: str) -> bool:
        """Tell whether a turn is running there."""
        known = self._conversations.get(session)
        return known is not None and bool(known.turns)

    def is_watched(self, session: str) -> bool:
        """Tell whether heartbeats are sent there."""
        known = self._conversations.get(session)
        return known is not None and (bool(known.turns) or known.accompanied)

    def accompany(self, session: str, now: float) -> None:
        """Note that a session is about work that goes on elsewhere."""
        known = self.at(session, now)
        known.accompanied, known.spoke = True, now

    def part(self, session: str) -> None:
        """Note that the work elsewhere has ended."""
        if (known := self._conversations.get(session)) is not None:
            known.accompanied = False

    def leave(self, session: str, marker: str) -> None:
        """Forget a post that will not change again."""
        known = self._conversations.get(session)
        if known is None:
            return
        known.turns.pop(marker, None)
        known.asks.discard(marker)
        if not known.turns and not known.asks and not known.accompanied:
            del self._conversations[session]

    def silent(self, now: float) -> Sequence[str]:
        """List the sessions that need a heartbeat."""
        return [
            session
            for session, known in self._conversations.items()
            if (known.turns or known.accompanied)
            and not known.asks
            and now - known.spoke >= SILENCE_SECONDS
        ]


SETTLED_STATES: Final = {"started", "completed", "canceled", "duplicate"}
"""States from which an agent does not move an issue."""
PULL_REQUEST: Final = re.compile(r"/(?:pull|merge_requests)/\d+")


class IssueState:
    """Updates issues on behalf of one agent."""

    def __init__(self, name: str, api: LinearApi) -> None:
        self._name = name
        self._api = api

    async def begin(self, post: PostSend) -> None:
        """Move an issue that was delegated, when a new session begins."""
        session = post.target.external
        if post.content.message_id != session:
            return  # a follow-up: people may have moved the issue since, for a reason
        with self._log_failure(post):
            me, issue = await self._look_up(session)
            if issue is None:
                return
            if (issue["delegate"] or {}).get("id") == me:
                await self._take_on(post, issue)

    async def drop_known_links(self, session: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out links that the session has from an earlier turn: they would appear twice.

        Raises:
            PostDelayed: not now.
        """
        links = fields.get("addedExternalUrls", ())
        if not links:
            return dict(fields)
        try:
            found = await self._api.call("links", id=session)
        except LinearRefused:
            return dict(fields)  # better twice than never
        there = {link["url"] for link in found["agentSession"]["externalLinks"]}
        new = [link for link in links if link["url"] not in there]
        rest = {name: each for name, each in fields.items() if name != "addedExternalUrls"}
        return {**rest, "addedExternalUrls": new} if new else rest

    async def take_over(self, post: PostSend, change: SessionChange) -> None:
        """Become the delegate of an issue that has none, once there is a pull request for it."""
        links = change.fields.get("addedExternalUrls", ())
        if not any(PULL_REQUEST.search(each["url"]) for each in links):
            return
        with self._log_failure(post):
            me, issue = await self._look_up(post.target.external)
            if issue is not None and issue["delegate"] is None:
                await self._take_on(post, issue, delegateId=me)

    @contextmanager
    def _log_failure(self, post: PostSend) -> Iterator[None]:
        try:
            yield
        except (PostError, ServiceRefused) as error:
            logger.info("%s did not update the issue of %s: %s", self._name, post.target, error)

    async def _look_up(self, session: str) -> tuple[str, dict[str, Any] | None]:
        """Look up the agent's id and its issue."""
        found = await self._api.call("duties", id=session)
        return found["viewer"]["id"], found["agentSession"]["issue"]

    async def _take_on(self, post: PostSend, issue: dict[str, Any], **changes: str) -> None:
        """Move an issue to its first started state; people do that for automations."""
        if post.content.asker == events.AUTOMATION.id:
            return
        states = issue["team"]["states"]["nodes"]
        if issue["state"]["type"] not in SETTLED_STATES and states:
            first = min(states, key=lambda state: float(state["position"]))
            changes["stateId"] = first["id"]
        if changes:
            await self._api.call("update_issue", id=issue["id"], input=changes)
