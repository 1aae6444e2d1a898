"""Has the other members of an installation clean their machines, and adds up what they did."""

from __future__ import annotations

from collections.abc import Sequence
from socket import gethostname
from typing import Any

from app.core.erasure.types import Erased, Left, Stays
from app.core.signals import Facts, Signals, Topic

SECONDS = 1800.0
"""How long other machines may take to read all their files."""


async def clean_afar(signals: Signals, topic: Topic, **which: Any) -> list[Erased]:
    """Have every other member clean its machine; what is to go they read from the store."""
    try:
        answers = await signals.ask(topic, seconds=SECONDS, **which)
    except TimeoutError:
        return [Erased(left=(Left(Stays.MEMBERS),))]
    return [
        Erased(
            files=each["files"],
            clones=each["clones"],
            left=tuple(Left(Stays(why), where) for why, where in each["left"]),
        )
        for each in answers
    ]


def report(done: Erased) -> Facts:
    """Write what this machine did, for the member that asked."""
    left = [[each.why, f"{gethostname()}: {each.where}"] for each in done.left]
    return {"files": done.files, "clones": done.clones, "left": left}


def add_up(every: Sequence[Erased]) -> Erased:
    """Add up what several machines did."""
    return Erased(
        files=sum(each.files for each in every),
        clones=sum(each.clones for each in every),
        left=tuple(left for each in every for left in each.left),
    )
