"""Port for what agents do together: reviews, and what their place is told, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.reviewing import NewReview, Review


class ReviewStore(Protocol):
    """Reviews that agents gave."""

    async def give(self, new: NewReview) -> Review:
        """Store a review, or return the one that its turn gave before."""
        ...

    def of_turn(self, turn: int) -> Review | None:
        """Read the review that a turn gave."""
        ...

    def unsent(self) -> Sequence[Review]:
        """List the reviews that may not have reached their platform and their place yet."""
        ...

    async def sent(self, review: int, link: str) -> None:
        """Record that a review is where it belongs, and where it can be read."""
        ...

    async def tell(self, session: int, mark: str, words: str, agent: str = "") -> tuple[int, ...]:
        """Say something once where a session began; returns the posts to send.

        `agent` says it, if that is not the session's own one.
        """
        ...
