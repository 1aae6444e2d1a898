"""Counts what happens, in Prometheus' form."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest

_NAMES = {
    "turns": ("Turns by agent and how they ended", ("agent", "state")),
    "agent_frames_dropped": (
        "Frames of agents that were dropped or not understood",
        ("agent", "reason"),
    ),
    "posts": ("Posts by adapter and how sending them ended", ("adapter", "outcome")),
}


class Metrics:
    """The counters port on prometheus-client."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"agent_bridge_{name}", words, labels, registry=self._registry)
            for name, (words, labels) in _NAMES.items()
        }

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        """Add to a counter."""
        self._counters[name].labels(**labels).inc(amount)

    def text(self) -> bytes:
        """Write all counters down."""
        return generate_latest(self._registry)
