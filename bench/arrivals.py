"""Models how a company uses the bridge: many idle conversations, few busy ones, bursts, long turns.

One second here is about one minute of real life: people write less often, agents work longer, and
the bridge does the same for each message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

BURST_SIZE = 3.0
"""Messages that come together on average: a message is seldom alone."""
BURST_SECONDS = 0.5
"""The time in which they come."""
BUSY_SHARE = 0.1
"""The conversations that get most of the messages."""
BUSY_WEIGHT = 0.8
"""The part of the messages that they get."""
WORK_MEDIAN_SECONDS, WORK_SIGMA = 1.5, 0.8
"""Log-normal: half of all turns are short, one in fifty takes five times as long."""
LONGEST_SECONDS = 12


@dataclass(frozen=True, slots=True)
class Message:
    """What a person asks of an agent."""

    at: float
    """Seconds after the beginning."""
    number: int
    place: int
    agent: int
    work_seconds: int
    """How long the agent takes."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """So many conversations with so many agents, and how often people write."""

    places: int
    agents: int
    per_second: float
    seconds: float
    seed: int = 1

    def messages(self) -> Iterator[Message]:
        """List the messages in the order of their time; the same each time."""
        random = Random(self.seed)
        times: list[float] = []
        at = 0.0
        while True:
            at += random.expovariate(self.per_second / BURST_SIZE)
            if at >= self.seconds:
                break
            size = 1
            while random.random() > 1 / BURST_SIZE:
                size += 1
            times += [at + random.uniform(0, BURST_SECONDS) for _ in range(size)]
        busy = max(int(self.places * BUSY_SHARE), 1)
        for number, moment in enumerate(sorted(times)):
            is_busy = random.random() < BUSY_WEIGHT
            place = random.randrange(busy) if is_busy else random.randrange(self.places)
            work = random.lognormvariate(0, WORK_SIGMA) * WORK_MEDIAN_SECONDS
            yield Message(
                moment,
                number,
                place,
                place % self.agents,
                min(max(round(work), 1), LONGEST_SECONDS),
            )
