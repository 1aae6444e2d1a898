"""Ports for what agents do together: reviews, groups of delegations, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.reviews import NewReview, Review
from app.model.types import TurnRef
from app.model.updates import AskRequest


@dataclass(frozen=True, slots=True)
class Picked:
    """What people were asked about a group, and what they said."""

    state: str
    """`open` until it is answered, withdrawn or too late."""
    answer: str


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


class GroupStore(Protocol):
    """Groups of delegations, and what their place is told of them, each once."""

    async def enter(self, heard: Heard, agent: str) -> int:
        """Return the session of an agent in the place of a message; it is begun if needed."""
        ...

    def unfinished(self) -> Sequence[str]:
        """List the groups that are not over."""
        ...

    async def end(self, session: int, group: str, words: str = "") -> tuple[int, ...]:
        """Record that a group is over, and say so where a session began, if there are words.

        Returns the posts to send.
        """
        ...

    def author_of(self, session: int) -> int | None:
        """Return the session whose work another one was asked to review; None if it was not."""
        ...

    def running(self, place: PlaceKey) -> Sequence[int]:
        """List the delegations that work now because of a person's command in a place."""
        ...

    async def ask(
        self, group: str, ref: TurnRef, request: AskRequest, *, deadline: float
    ) -> tuple[int, ...]:
        """Ask people once about a group, where it began; returns the posts to send."""
        ...

    def picked(self, group: str) -> Picked | None:
        """Read what people answered about a group; None if they were not asked."""
        ...

    def is_held(self, session: int) -> bool:
        """Tell whether the work of a session waits for people to pick it."""
        ...

    def last_words(self, session: int) -> str:
        """Read what the last turn of a session that is done ended with."""
        ...

    async def tell(self, session: int, mark: str, words: str, agent: str = "") -> tuple[int, ...]:
        """Say something once where a session began; returns the posts to send.

        `agent` says it, if that is not the session's own one.
        """
        ...
