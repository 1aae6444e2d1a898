"""How an agent behaves on an issue: it shows where it stands, and never fights people.

What Linear does not want is left as it is: no post ever fails of good manners.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from app.core.posts import PostSend
from app.errors import PostError, ServiceRefused
from app.services.linear import events
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.render import Change

logger = logging.getLogger(__name__)

SETTLED_STATES: Final = {"started", "completed", "canceled", "duplicate"}
"""Where an issue stands that an agent does not move."""
PULL_REQUEST: Final = re.compile(r"/(?:pull|merge_requests)/\d+")


class Etiquette:
    """The manners of one agent."""

    def __init__(self, name: str, api: LinearApi) -> None:
        self._name = name
        self._api = api

    async def begins(self, post: PostSend) -> None:
        """Move an issue that was delegated, when a new session begins."""
        session = post.target.external
        if post.content.message_id != session:
            return  # a follow-up: whoever moved the issue since knows why
        with self._politely(post):
            me, issue = await self._situation(session)
            if issue is None:
                return
            if (issue["delegate"] or {}).get("id") == me:
                await self._take_on(post, issue)

    async def new_to(self, session: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out links that the session has from an earlier turn: they would stand there twice.

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

    async def shows(self, post: PostSend, change: Change) -> None:
        """Become the delegate of an issue that has none, once there is a pull request for it."""
        links = change.fields.get("addedExternalUrls", ())
        if not any(PULL_REQUEST.search(each["url"]) for each in links):
            return
        with self._politely(post):
            me, issue = await self._situation(post.target.external)
            if issue is not None and issue["delegate"] is None:
                await self._take_on(post, issue, delegateId=me)

    @contextmanager
    def _politely(self, post: PostSend) -> Iterator[None]:
        try:
            yield
        except (PostError, ServiceRefused) as error:
            logger.info("%s left %s as it is: %s", self._name, post.target, error)

    async def _situation(self, session: str) -> tuple[str, dict[str, Any] | None]:
        """Ask who the agent is and how its issue stands."""
        found = await self._api.call("duties", id=session)
        return found["viewer"]["id"], found["agentSession"]["issue"]

    async def _take_on(self, post: PostSend, issue: dict[str, Any], **changes: str) -> None:
        """Move an issue to where work begins; automations leave that to people."""
        if post.content.asker == events.AUTOMATION.id:
            return
        states = issue["team"]["states"]["nodes"]
        if issue["state"]["type"] not in SETTLED_STATES and states:
            first = min(states, key=lambda state: float(state["position"]))
            changes["stateId"] = first["id"]
        if changes:
            await self._api.call("update_issue", id=issue["id"], input=changes)
