"""Shows what a paused bridge will send and begin once it goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from app.cli.lines import one_line
from app.cli.stored import make_guard, read_registry
from app.config import Configuration
from app.features.pause.store import SuspensionStore
from app.model.suspension import Pending
from app.store.reading import reading
from app.vault import Vault

SHOWN: Final = 20
"""Lines of each kind; the rest is counted."""
WORDS: Final = 80
"""Characters of a post that are shown."""


def show_pending(configuration: Configuration) -> None:
    """Show what waits in the store.

    Raises:
        StoreUnavailable: it cannot be read.
    """
    vault = Vault(configuration.secret_values())
    with reading(configuration.database_url, make_guard(configuration, vault)) as stores:
        pending = None if stores is None else asyncio.run(stores.open(SuspensionStore).pending())
    if pending is not None:
        names = read_registry(configuration)
        for line in lines_of(pending, names.name):
            sys.stdout.write(f"{vault.redact(line)}\n")


def lines_of(pending: Pending, name_of: Callable[[str], str]) -> Iterator[str]:
    """Write what waits, line by line; `name_of` names an agent by its id."""
    yield f"Unsent posts: {len(pending.posts)} (one that had arrived is found and not repeated)"
    yield from _some(
        f"  {key.service}:{key.external} {name_of(key.agent)}: {one_line(words)[:WORDS]}"
        for key, words in pending.posts
    )
    yield f"Turns that run or continue: {len(pending.turns)}"
    yield from _some(
        f"  {place} {name_of(agent)}: {state}" for place, agent, state in pending.turns
    )
    yield f"Open asks: {pending.asks}"
    yield f"Stored events that are not read yet: {pending.deliveries}"
    yield f"Schedules that are due: {pending.schedules}"


def _some(lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    yield from listed[:SHOWN]
    if len(listed) > SHOWN:
        yield f"  and {len(listed) - SHOWN} more"
