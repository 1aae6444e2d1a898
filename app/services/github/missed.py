"""Reads what GitHub has in the conversations of one App, as the events that should have arrived.

Whether an event did arrive is decided elsewhere: a delivery is known by its id, a comment by its
number.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Any, Final

import httpx
import orjson
from gidgethub import GitHubException

from app.clock import Clock
from app.core.adapters import Source
from app.errors import PostDelayed
from app.model.inbound import Delivery
from app.model.types import ActivePlace
from app.services.github.api import GithubApi
from app.services.github.auth import GitHubApps
from app.services.github.names import Name, Spot
from app.services.github.payloads import GitHubAccount
from app.services.github.webhook import EVENT

IN_USE_SECONDS: Final = 3 * 24 * 3600.0
"""How long the comments of a conversation are read after the agent's last turn: a weekend."""
DELIVERIES: Final = "deliveries"
COMMENTED: Final = "issue_comment"
"""The event that tells of a comment."""

Find = Callable[[float], AsyncGenerator[Delivery, None]]


class Conversations:
    """What one App can read again: its log of deliveries, and the conversations in use."""

    def __init__(
        self,
        adapter: str,
        api: GithubApi,
        directory: GitHubApps,
        clock: Clock,
        *,
        active: Callable[[float], Awaitable[Sequence[ActivePlace]]],
        failed: Find,
    ) -> None:
        """Read again; `active` lists what is in use since a time, `failed` the lost deliveries."""
        self._adapter = adapter
        self._api = api
        self._directory = directory
        self._clock = clock
        self._active = active
        self._failed = failed

    async def sources(self) -> Sequence[Source]:
        """List the App's log of deliveries, and the conversations that its agent works in."""
        now = self._clock.now()
        in_use = await self._active(now - IN_USE_SECONDS)
        spots = {place.key.external: place.updated_at for place in in_use}
        return [
            Source(DELIVERIES, partial(_clearly, self._failed), now),
            *(
                Source(name, partial(_clearly, partial(self._said, Spot.parse(name))), used_at)
                for name, used_at in spots.items()
            ),
        ]

    async def _said(self, spot: Spot, since: float) -> AsyncGenerator[Delivery, None]:
        """Find the comments of people since a time."""
        comments = await self._api.comments_since(spot, since)
        said = [each for each in comments if _written_at(each) > since and self._is_said(each)]
        around = await self._api.surroundings(spot) if said else {}
        for comment in said:
            event = {"action": "created", **around, "comment": comment, "sender": comment["user"]}
            yield Delivery(
                self._adapter,
                f"missed:{Name('comment', comment['id'])}",
                None,
                {EVENT: COMMENTED},
                orjson.dumps(event),
                self._clock.now(),
                sent_at=_written_at(comment),
            )

    def _is_said(self, comment: dict[str, Any]) -> bool:
        """Tell whether a person, or a bot that is not ours, wrote a comment."""
        if (author := comment.get("user")) is None:
            return False  # the account is gone
        return self._directory.us.speaker(GitHubAccount.model_validate(author)).kind != "agent"


async def _clearly(find: Find, since: float) -> AsyncGenerator[Delivery, None]:
    """Read, and say as the bridge does if GitHub does not answer.

    Raises:
        PostDelayed: not now.
    """
    try:
        async with aclosing(find(since)) as found:
            async for delivery in found:
                yield delivery
    except (GitHubException, httpx.HTTPError) as error:
        raise PostDelayed(f"GitHub does not answer: {error}") from error


def _written_at(comment: dict[str, Any]) -> float:
    return datetime.fromisoformat(comment["created_at"]).timestamp()
