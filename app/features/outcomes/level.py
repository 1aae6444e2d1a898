"""Sums up how good the service is: outcomes and times of messages, by service and day; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.model.outcomes import MessageOutcome, TracedMessage


@dataclass(frozen=True, slots=True)
class Times:
    """How long something took: usually, and for the slowest twentieth at least."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class ServiceDay:
    """The messages of one service on one day."""

    day: str
    service: str
    messages: int
    outcomes: tuple[tuple[MessageOutcome, int], ...]
    """How often each was the outcome, the most frequent first."""
    first_sign: Times | None
    """From sending a message to the first that people saw of the work on it."""
    answer: Times | None
    late: int
    """How many the bridge had to look for."""


def sum_up(messages: Iterable[TracedMessage], day_of: Callable[[float], str]) -> list[ServiceDay]:
    """Sum up messages by service and day, the newest day first."""
    groups: defaultdict[tuple[str, str], list[TracedMessage]] = defaultdict(list)
    for each in messages:
        groups[day_of(each.decided_at), each.place.service].append(each)
    return [_sum_up(*key, groups[key]) for key in sorted(groups, reverse=True)]


def _sum_up(day: str, service: str, messages: Sequence[TracedMessage]) -> ServiceDay:
    return ServiceDay(
        day=day,
        service=service,
        messages=len(messages),
        outcomes=tuple(Counter(each.outcome for each in messages).most_common()),
        first_sign=times([each.first_sign_seconds for each in messages]),
        answer=times([each.answer_seconds for each in messages]),
        late=sum(each.late for each in messages),
    )


def times(found: Iterable[float | None]) -> Times | None:
    """Find the median and the 95th percentile; None if nothing was measured."""
    known = sorted(each for each in found if each is not None)
    if not known:
        return None
    return Times(*(known[min(len(known) - 1, int(len(known) * part))] for part in (0.5, 0.95)))
