"""Moves and takes on issues as an agent works, without overriding people.

If Linear refuses a change, the issue stays as it is: no post ever fails because of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from app.errors import PostError, ServiceRefused
from app.model.posts import PostSend
from app.services.linear import events
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.render import Change

logger = logging.getLogger(__name__)

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

    async def take_over(self, post: PostSend, change: Change) -> None:
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
