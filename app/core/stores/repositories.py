"""Ports for repositories: clones, names, and proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.model.inbound import Naming, Renamed
from app.model.keys import PlaceKey
from app.model.updates import AskRequest
from app.model.workspaces import Changes, Checkout, Judged, Opened, Proposed


class CheckoutStore(Protocol):
    """Clones of repositories, and the progress of each."""

    def latest(self, session: int) -> Checkout | None:
        """Read the clone that a session was given last."""
        ...

    async def all(self) -> Sequence[Checkout]:
        """List the clones that are still there."""
        ...

    def in_place(self, place: PlaceKey) -> Sequence[Checkout]:
        """List the last clone of each session around a place, removed ones too.

        The last used comes first. Around a place are also the agents that work for those in it.
        """
        ...

    def of_branch(self, url: str, branch: str) -> int | None:
        """Tell which session made a branch of a repository."""
        ...

    async def begin(self, checkout: Checkout) -> None:
        """Record how a clone will be opened, before it is made."""
        ...

    async def ready(self, session: int, number: int, opened: Opened, machine: str) -> None:
        """Record that a clone is ready, on a machine."""
        ...

    async def sent(self, session: int, number: int, commit: str) -> None:
        """Record that a commit was pushed to the remote."""
        ...

    async def told(self, session: int, number: int, commit: str, link: str) -> None:
        """Record that people were told of a commit, and where it is proposed."""
        ...

    async def worded(self, session: int, number: int, title: str, body: str) -> None:
        """Record an agent's own words for what is proposed from a clone."""
        ...

    async def measured(self, session: int, number: int, changes: Changes) -> None:
        """Record how much changed in a clone."""
        ...

    async def judged(self, session: int, number: int, found: Judged) -> None:
        """Record what others say about a clone's proposal."""
        ...

    async def moved(self, session: int, number: int, commit: str) -> None:
        """Record which commit a clone for reading shows now."""
        ...

    async def gone(self, session: int, number: int) -> None:
        """Record that a clone was removed."""
        ...


class NameStore(Protocol):
    """Names of repositories, which may change."""

    def of(self, host: str, number: int) -> str | None:
        """Tell the name that a repository has now."""
        ...

    def now(self, host: str, name: str) -> str:
        """Tell the current name of a repository that had a name; the same if unchanged."""
        ...

    def plan(self, naming: Naming) -> Sequence[Renamed]:
        """List the renames that follow from a repository's name, in order.

        A repository that takes another one's name finds nothing under it.
        """
        ...

    async def follow(self, naming: Naming) -> None:
        """Record a name; sessions, places, clones and posts follow."""
        ...


class ProposalStore(Protocol):
    """What sessions have proposed, and what their places were told about it."""

    def find(self, agent: str, repository: str, branch: str) -> Proposed | None:
        """Find what an agent proposed from a branch; None if nothing, or if removed since."""
        ...

    def latest(self, session: int) -> Proposed | None:
        """Tell what a session proposed last."""
        ...

    def onto(self, agent: str, repository: str, base: str) -> Sequence[Proposed]:
        """List an agent's open proposals for a branch."""
        ...

    async def settle(self, proposed: Proposed, outcome: str) -> None:
        """Record that it was merged, closed or reopened."""
        ...

    async def tell(
        self,
        proposed: Proposed,
        mark: str,
        words: str,
        *,
        offer: AskRequest | None = None,
        deadline: float = 0.0,
        passed: bool = False,
    ) -> tuple[int, ...]:
        """Report news where the work began, as a line or an offer; returns the posts to send.

        News with a known mark is not reported again. An earlier open offer is withdrawn; once the
        checks passed, the count of tries starts over.
        """
        ...
