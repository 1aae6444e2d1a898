"""Holds a command that is ready to start: its arguments, guard and inherited descriptors.

The guard gets its options through a descriptor: every process inside can read a command line, and
it would name what is hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Handover:
    """Loopback ports that are bound inside a sandbox, and where their sockets are sent."""

    channel: int
    """A descriptor that the command inherits: a unix socket; the bridge has the other end."""
    ports: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """bubblewrap around a command."""

    binary: str
    options: tuple[str, ...]
    fleeting: frozenset[str] = frozenset()
    """Paths of others that it hides: bubblewrap fails if one of them is gone."""

    def current_options(self) -> Iterator[str]:
        """Yield the options without those for a path that is gone by now."""
        gone = {path for path in self.fleeting if not os.path.lexists(path)}
        if not gone:
            yield from self.options
            return
        starts = [index for index, word in enumerate(self.options) if word.startswith("--")]
        for start, end in pairwise([*starts, len(self.options)]):
            if self.options[end - 1] not in gone:
                yield from self.options[start:end]

    @property
    def is_outdated(self) -> bool:
        """Whether something that it hides is gone, so that another try may succeed."""
        return not all(map(os.path.lexists, self.fleeting))


@dataclass(frozen=True, slots=True)
class Command:
    """What to start."""

    argv: tuple[str, ...]
    guard: Guard | None = None
    has_reaper: bool = False
    """Whether its first process stays, and kills all descendants when it gets SIGUSR1."""
    descriptors: tuple[int, ...] = ()
    """Inherited under their own numbers."""

    @contextmanager
    def open(self) -> Iterator[tuple[list[str], tuple[int, ...]]]:
        """Yield the argv to execute and the descriptors to pass; valid inside the block."""
        if self.guard is None:
            yield list(self.argv), self.descriptors
            return
        options = os.memfd_create("sandbox")
        try:
            os.write(
                options, "".join(f"{word}\0" for word in self.guard.current_options()).encode()
            )
            os.lseek(options, 0, os.SEEK_SET)
            argv = [self.guard.binary, "--args", str(options), "--", *self.argv]
            yield argv, (*self.descriptors, options)
        finally:
            os.close(options)
