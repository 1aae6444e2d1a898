"""Socket Mode: a frame kept and acknowledged, against those who only acknowledge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Goal, Row, Scale, ratios
from bench.frames import Plan, run
from bench.history import stored
from bench.machine import Server, free_port
from bench.proof import wait_for
from bench.tally import counted

DELIVERIES = "select count(*) from delivery"
BRIDGE, LOOP, BOLT = "socket_bridge", "socket_loop", "socket_bolt"


@dataclass
class Receiver:
    """A program that listens, and how it did in each round."""

    name: str
    rates: list[float] = field(default_factory=list)

    def load(self, scale: Scale, folder: Path) -> None:
        """Put it under load once, in a process of its own."""
        folder.mkdir()
        port = free_port()
        keeps = folder if self.name == BRIDGE else folder / "tally"
        module = f"bench.receivers.{self.name}"
        with Server(module, str(port), str(keeps), port=port, log=folder / "log"):
            rate = run(Plan(port, scale.deliveries, scale.warm_up)).per_second
            self.prove(keeps, scale.deliveries + scale.warm_up)
        self.rates.append(rate)

    def prove(self, keeps: Path, sent: int) -> None:
        """Make sure that it has dealt with every frame.

        Raises:
            Unproven: it has not.
        """
        if self.name == BRIDGE:
            wait_for(lambda: stored(keeps, DELIVERIES), sent, "frames in the store")
        else:
            wait_for(lambda: counted(keeps), sent, f"frames that {self.name} dealt with")


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the bridge's line against a bare loop and against slack-bolt."""
    ours, loop, bolt = Receiver(BRIDGE), Receiver(LOOP), Receiver(BOLT)
    for number in range(scale.rounds):
        for receiver in (ours, loop, bolt):
            receiver.load(scale, folder / f"{receiver.name}-{number}")
    yield _row("bare aiohttp loop, stores nothing", ours, loop, 0.45)
    yield _row("slack-bolt, stores nothing", ours, bolt, 3.0)


def _row(against: str, ours: Receiver, theirs: Receiver, goal: float) -> Row:
    best, other = max(ours.rates), max(theirs.rates)
    return Row(
        "Socket Mode, kept and acknowledged",
        against,
        best / other,
        " x",
        Goal("at least", goal),
        f"{best:,.0f}/s against {other:,.0f}/s, "
        f"median ratio {ratios(ours.rates, theirs.rates):.2f}",
    )
