"""Holds a command that is ready to start: its arguments, guard and inherited descriptors.

The guard gets its options through a descriptor: every process inside can read a command line, and
it would name what is hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


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
            os.write(options, "".join(f"{word}\0" for word in self.guard.options).encode())
            os.lseek(options, 0, os.SEEK_SET)
            argv = [self.guard.binary, "--args", str(options), "--", *self.argv]
            yield argv, (*self.descriptors, options)
        finally:
            os.close(options)
