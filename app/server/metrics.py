"""Counts turns, tool calls, dropped frames and posts for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest

_NAMES = {
    "turns": ("Turns by agent and final state", ("agent", "state")),
    "agent_frames_dropped": (
        "Agent frames that were dropped or not understood",
        ("agent", "reason"),
    ),
    "tool_calls": ("Calls of the bridge's tools by agent and tool", ("agent", "tool")),
    "posts": ("Posts by adapter and outcome", ("adapter", "outcome")),
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

    def text(self, *, by_name: bool = True) -> bytes:
        """Write all counters, by agent and adapter or summed up."""
        return generate_latest(self._registry if by_name else self._sum())

    def _sum(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        for name, (words, (_whose, *labels)) in _NAMES.items():
            total = Counter(f"agent_bridge_{name}", words, labels, registry=registry)
            for metric in self._counters[name].collect():
                for sample in metric.samples:
                    if sample.name.endswith("_total"):
                        kept = {label: sample.labels[label] for label in labels}
                        total.labels(**kept).inc(sample.value)
        return registry
