"""The ports of what is known of repositories: clones, names, and what was proposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.inbound import Naming, Renamed
from app.core.updates import AskRequest
from app.core.workspaces import Checkout, Opened, Proposed


class CheckoutStore(Protocol):
    """Clones of repositories, and how far each has come."""

    def latest(self, session: int) -> Checkout | None:
        """Read the clone that a session was given last."""
        ...

    async def all(self) -> Sequence[Checkout]:
        """List the clones that are still there."""
        ...

    def of_branch(self, url: str, branch: str) -> int | None:
        """Tell which session made a branch of a repository."""
        ...

    async def begin(self, checkout: Checkout) -> None:
        """Note how a clone will be opened, before anything of it is made."""
        ...

    async def ready(self, session: int, number: int, opened: Opened) -> None:
        """Note that a clone is there."""
        ...

    async def sent(self, session: int, number: int, commit: str) -> None:
        """Note that a commit went on to the remote."""
        ...

    async def told(self, session: int, number: int, commit: str, link: str) -> None:
        """Note that people know of a commit, and where it is proposed."""
        ...

    async def gone(self, session: int, number: int) -> None:
        """Note that a clone was thrown away."""
        ...


class NameStore(Protocol):
    """Names of repositories, which may change."""

    def of(self, host: str, number: int) -> str | None:
        """Tell the name that a repository has now."""
        ...

    def now(self, host: str, name: str) -> str:
        """Tell what a repository is called now that had a name; itself if nobody else has it."""
        ...

    def plan(self, naming: Naming) -> Sequence[Renamed]:
        """Tell what gets another name if this is what a repository is called, in order.

        Whoever takes the name of another repository finds nothing under it.
        """
        ...

    async def follow(self, naming: Naming) -> None:
        """Take note of a name; sessions, places, clones and posts go along."""
        ...


class ProposalStore(Protocol):
    """What sessions have proposed, and what was told of it where their work began."""

    def find(self, agent: str, repository: str, branch: str) -> Proposed | None:
        """Find what an agent proposed from a branch; None if it did not, or was removed since."""
        ...

    def latest(self, session: int) -> Proposed | None:
        """Tell what a session proposed last."""
        ...

    def onto(self, agent: str, repository: str, base: str) -> Sequence[Proposed]:
        """List what an agent has proposed for a branch and what is still open."""
        ...

    async def settle(self, proposed: Proposed, outcome: str) -> None:
        """Note that it was merged, closed or opened again."""
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
        """Tell news where the work began, in a line or as an offer; returns the posts to send.

        What was told under the same mark is not told again. An offer that was open before is
        withdrawn; once the checks passed, tries are counted anew.
        """
        ...
