"""Defines the part that a feature adds to one running bridge: its life, and where it may speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fastapi import Request

from app.core.hooks import Hook
from app.core.runtime import Runtime
from app.metrics import Check

P = TypeVar("P", bound="Part")


class Part(Hook):
    """What a feature does in one bridge; a default for everything that it may leave out."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        """The bridge."""

    async def recover(self) -> None:
        """Finish what a crash cut off, before any turn goes on."""

    def join(self) -> None:
        """Begin what every member of an installation does, not the leader alone."""

    async def reload(self) -> None:
        """Read files of the settings again: the operator sent HUP.

        Raises:
            BridgeError: they cannot be used; nothing has changed.
        """

    def start(self) -> None:
        """Begin background work, once the bridge goes on with what the last run left."""

    async def close(self) -> None:
        """End background work; before running turns get their grace time."""

    async def finish(self) -> None:
        """End what running turns still needed; after their grace time."""

    async def expire(self) -> None:
        """Delete what is older than the operator wants it; now and every few hours."""

    def holds_start(self) -> bool:
        """Tell whether the bridge must not begin its work yet."""
        return False

    def checks(self) -> Sequence[Check]:
        """Say why a bridge that works should get no requests."""
        return ()

    def hooks(self) -> Iterable[Hook]:
        """List what the pipe asks: itself, or parts of it."""
        return (self,)


def find_part(kind: type[P]) -> Callable[[Request], P]:
    """Return a dependency of routes that finds the part of a feature."""

    def find(request: Request) -> P:
        part: P = next(each for each in request.app.state.features if isinstance(each, kind))
        return part

    return find
