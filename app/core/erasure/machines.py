"""Has the other members of an installation clean their machines, and adds up what they did.

A machine that is away cleans its disk when its member is back: who is to, is part of what is stored
of the purge or the person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any

from app.model.erasure import Erased, Left, Stays
from app.signals import Facts, Signals, Topic

SECONDS = 1800.0
"""How long other machines may take to read all their files."""


async def ask_others(signals: Signals, topic: Topic, **which: Any) -> Sequence[Facts]:
    """Have every other member clean its machine; what is to go they read from the store."""
    try:
        return await signals.ask(topic, seconds=SECONDS, **which)
    except TimeoutError:
        return ()  # those that did not hear of it do it later


def find_away(
    machines: Mapping[str, str], signals: Signals, answers: Sequence[Facts]
) -> tuple[frozenset[str], list[Left]]:
    """Return the members that did not clean their machines, and what to tell of them."""
    done = {signals.name, *(each["member"] for each in answers)}
    away = sorted(machines.keys() - done)
    return frozenset(away), [Left(Stays.AWAY, f"{machines[each]} ({each})") for each in away]


def report(done: Erased, signals: Signals, own: Path) -> Facts:
    """Write what this machine did, for the member that asked; `own` is not shared with others."""
    host = gethostname()
    left = [
        [each.why, f"{host}: {each.where}" if each.where.startswith(f"{own}/") else each.where]
        for each in done.left
    ]
    counts = {"files": done.files, "clones": done.clones}
    return {**counts, "left": left, "member": signals.name}


def add_up(here: Erased, answers: Sequence[Facts]) -> Erased:
    """Add up what several machines did; what they share is named once."""
    left = [*here.left, *(Left(Stays(why), at) for each in answers for why, at in each["left"])]
    return Erased(
        files=here.files + sum(each["files"] for each in answers),
        clones=here.clones + sum(each["clones"] for each in answers),
        left=tuple(dict.fromkeys(left)),
    )
