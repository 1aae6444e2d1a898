"""Measures the bridge for Prometheus: what happened, how long it took, and how things are now.

Every series is there from the start, with zeros, so that an alert on it can tell "none" from "not
measured". Callers who are not signed in see no names of agents or adapters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from app.model.outcomes import OPEN_OUTCOMES, MessageOutcome
from app.model.phase import MEASURED

if TYPE_CHECKING:
    from app.traces import Tracer


@dataclass(frozen=True, slots=True)
class Check:
    """One readiness check."""

    name: str
    ok: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Vital:
    """One measured value."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


ROLES = ("all", "front", "worker")


def measure_members(roles: Sequence[str], *, silent: float, is_leader: bool) -> Sequence[Vital]:
    """Count the bridges that share a database, by their roles."""
    return [
        *(Vital("members", roles.count(role), (("role", role),)) for role in ROLES),
        Vital("member_silent_seconds", silent),
        Vital("desk", float(is_leader)),
    ]


PREFIX = "agent_bridge_"
_ADAPTER, _AGENT, _SERVICE = "adapter", "agent", "service"
_ENDS = ("done", "failed", "cancelled")

COUNTERS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...] | None]] = {
    "deliveries": (
        "Webhooks by adapter and outcome",
        (_ADAPTER, "outcome"),
        ("accepted", "refused", "unavailable"),
    ),
    "messages": (
        "Messages by the adapter that heard them and outcome",
        (_ADAPTER, "outcome"),
        tuple(sorted(set(MessageOutcome) - OPEN_OUTCOMES)),
    ),
    "found_late": (
        "Messages that did not arrive and were found later, by adapter and what became of them",
        (_ADAPTER, "outcome"),
        ("done", "asked", "left"),
    ),
    "turns": ("Turns by agent and final state", (_AGENT, "state"), _ENDS),
    "posts": ("Posts by adapter and outcome", (_ADAPTER, "outcome"), ("sent", "failed")),
    "platform_errors": (
        "Failed calls to platforms by adapter and kind: told to wait, refused, no clear answer",
        (_ADAPTER, "kind"),
        ("limited", "refused", "unclear"),
    ),
    "tool_calls": ("Calls of the bridge's tools by agent and tool", (_AGENT, "tool"), None),
    "agent_frames_dropped": (
        "Agent frames that were dropped or not understood",
        (_AGENT, "reason"),
        None,
    ),
}
"""Each with its words, its labels, and the values of its last label, where they are known."""

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SLOW = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
HISTOGRAMS: Mapping[str, tuple[str, tuple[str, ...], tuple[float, ...], tuple[str, ...]]] = {
    "ack_seconds": ("From a webhook's arrival to its acknowledgement", (), _FAST, ()),
    "commit_seconds": ("How long one commit of the store took", (), _FAST, ()),
    "first_sign_seconds": (
        "From sending a message to the first that people saw of the work on it",
        (_SERVICE,),
        _SLOW,
        (),
    ),
    "answer_seconds": ("From sending a message to its answer", (_SERVICE,), _SLOW, ()),
    "queue_seconds": ("How long a turn waited before it began", (), _SLOW, ()),
    "turn_phase_seconds": (
        "How long turns stayed in a phase",
        ("phase",),
        _SLOW,
        tuple(map(str, MEASURED)),
    ),
}
"""Each with its words, its labels, its buckets, and the values of its label."""

GAUGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "ready": ("Whether /readyz says yes", ()),
    "inbox_waiting": ("Deliveries that are not decided on yet", ()),
    "inbox_oldest_seconds": ("Age of the oldest of them", ()),
    "turns_open": ("Turns that have not ended, by state", ("state",)),
    "pauses": ("What the operator paused: everything, agents and places", ()),
    "turns_held": ("Queued turns that wait until a person lets them go on", ()),
    "slots": ("How many turns may run at once", ()),
    "slots_used": ("How many of these slots are taken", ()),
    "members": ("Bridges that share the database, by role", ("role",)),
    "member_silent_seconds": ("Time since the last sign of the one that is silent longest", ()),
    "desk": ("Whether this bridge does what one does for all", ()),
    "asks_open": ("Asks that people have not answered", ()),
    "ask_oldest_seconds": ("Age of the oldest of them", ()),
    "outbox_waiting": ("Posts that have not arrived yet", ()),
    "outbox_oldest_seconds": ("Age of the oldest of them", ()),
    "delegations_open": ("Turns that agents asked of other agents and that have not ended", ()),
    "processes": ("Agent processes that live, by agent", (_AGENT,)),
    "disk_free_bytes": ("Free space on the disk of DATA_DIR", ()),
    "disk_watermark_bytes": ("Free space below which no turn begins", ()),
    "database_bytes": ("Size of the store's file", ()),
}


class Metrics:
    """The counters port on prometheus-client."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"{PREFIX}{name}", words, labels, registry=self._registry)
            for name, (words, labels, _) in COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(
                f"{PREFIX}{name}", words, labels, buckets=buckets, registry=self._registry
            )
            for name, (words, labels, buckets, _) in HISTOGRAMS.items()
        }
        for name, (_, labels, _, values) in HISTOGRAMS.items():
            for value in values:
                self._histograms[name].labels(**dict.fromkeys(labels, value))

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counters[name].labels(**labels).inc(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(**labels) if labels else histogram).observe(seconds)

    def trace(self, stage: str, turn: int, began: float, ended: float, **facts: str) -> None:
        """Export a stage of a turn, if traces are wanted."""
        if self._tracer is not None:
            self._tracer.record(stage, turn, began, ended, facts)

    def know(self, agents: Collection[str], adapters: Collection[str]) -> None:
        """Begin every known series of these agents and adapters at zero."""
        owners = {_AGENT: agents, _ADAPTER: adapters}
        for name, (_, (whose, what), values) in COUNTERS.items():
            for owner, value in product(owners[whose], values or ()):
                self._counters[name].labels(**{whose: owner, what: value})
        services = {adapter.partition(":")[0] for adapter in adapters}
        for name, (_, labels, _, _) in HISTOGRAMS.items():
            for service in services if labels == (_SERVICE,) else ():
                self._histograms[name].labels(service)

    def text(self, vitals: Iterable[Vital] = (), *, by_name: bool = True) -> bytes:
        """Write all series, by agent and adapter or summed up."""
        now = _gauges(vitals, by_name=by_name)
        counted = self._registry if by_name else self._sum()
        return generate_latest(counted) + generate_latest(now)

    def _sum(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        for name, (words, (_whose, *labels), values) in COUNTERS.items():
            total = Counter(f"{PREFIX}{name}", words, labels, registry=registry)
            for value in values or ():
                total.labels(value)
            for metric in self._counters[name].collect():
                for sample in metric.samples:
                    if sample.name.endswith("_total"):
                        kept = {label: sample.labels[label] for label in labels}
                        total.labels(**kept).inc(sample.value)
        for histogram in self._histograms.values():
            registry.register(histogram)
        return registry


def _gauges(vitals: Iterable[Vital], *, by_name: bool) -> CollectorRegistry:
    """Write how things are now; they are read for each caller."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    gauges = {
        name: Gauge(
            f"{PREFIX}{name}",
            words,
            [label for label in labels if by_name or label != _AGENT],
            registry=registry,
        )
        for name, (words, labels) in GAUGES.items()
    }
    for vital in vitals:
        kept = {name: value for name, value in vital.labels if by_name or name != _AGENT}
        gauge = gauges[vital.name]
        (gauge.labels(**kept) if kept else gauge).inc(vital.value)
    return registry
