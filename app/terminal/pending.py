"""Shows what a paused bridge will send and begin once it goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from app.config import Configuration
from app.store.stores import reading
from app.store.upkeep import Pending
from app.terminal.framing import one_line
from app.terminal.stored import make_guard, read_registry
from app.vault import Vault

SHOWN: Final = 20
"""Lines of each kind of what waits; the rest is counted."""
WORDS: Final = 80
"""Characters of a post that are shown."""


def show_pending(configuration: Configuration) -> None:
    """Show what a paused bridge will send and begin once it goes on.

    Raises:
        StoreUnavailable: it cannot be read.
    """
    vault = Vault(configuration.secret_values())
    with reading(configuration.database_url, make_guard(configuration, vault)) as stores:
        pending = None if stores is None else asyncio.run(stores.vitals.pending())
    if pending is not None:
        for line in _pending_lines(pending, read_registry(configuration).name):
            sys.stdout.write(f"{vault.redact(line)}\n")


def _pending_lines(pending: Pending, name_of: Callable[[str], str]) -> Iterator[str]:
    def some(lines: Iterable[str]) -> Iterator[str]:
        listed = list(lines)
        yield from listed[:SHOWN]
        if len(listed) > SHOWN:
            yield f"  and {len(listed) - SHOWN} more"

    yield f"Unsent posts: {len(pending.posts)} (one that had arrived is found and not repeated)"
    yield from some(
        f"  {key.service}:{key.external} {name_of(key.agent)}: {one_line(words)[:WORDS]}"
        for key, words in pending.posts
    )
    yield f"Turns that run or continue: {len(pending.turns)}"
    yield from some(f"  {place} {name_of(agent)}: {state}" for place, agent, state in pending.turns)
    yield f"Open asks: {pending.asks}"
    yield f"Stored events that are not read yet: {pending.deliveries}"
    yield f"Schedules that are due: {pending.schedules}"
