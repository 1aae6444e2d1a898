"""Shows where systems saturate: tables and curves for the documentation."""

from __future__ import annotations

import html
from collections.abc import Sequence
from math import log10
from pathlib import Path

from bench.figures import milliseconds
from bench.sizing import PEOPLE, Costs, size
from bench.systems import LATE_SECONDS, System

BEGIN = "<!-- scale: written by `make bench-scale ARGS=--write` -->\n"
END = "<!-- end of scale -->\n"

_COLORS = ("#2a9d5c", "#2563eb", "#d97706", "#b91c1c")
_LEFT, _TOP, _WIDTH, _HEIGHT = 70, 30, 520, 260
_LOWEST, _HIGHEST = 0.01, 100.0
"""Seconds on the logarithmic axis."""


def markdown(systems: Sequence[System], costs: Costs, machine: str) -> str:
    """Write the tables of all systems, and the sizes calculated from their costs."""
    lines = [
        f"Measured on: {machine}. All processes of a system, its agents and its database shared "
        "these cores.",
        "",
        "| system | messages/s | acknowledged p50 / p99 | agent has it p50 / p95 "
        "| CPU per message |",
        "|---|---|---|---|---|",
    ]
    for system in systems:
        for step in system.steps:
            cpu = ", ".join(
                f"{kind} {milliseconds(seconds)}" for kind, seconds in step.cpu.items() if seconds
            )
            late = " (saturated)" if step.saturated else ""
            lines.append(
                f"| {system.name} | {step.per_second:g}{late} "
                f"| {milliseconds(step.ack_p50)} / {milliseconds(step.ack_p99)} "
                f"| {milliseconds(step.wait_p50)} / {milliseconds(step.wait_p95)} | {cpu} |"
            )
    lines += [
        "",
        "| people | messages/s in the busiest minutes | agents at once | what to run "
        "| cores for the bridge | cores for PostgreSQL | database per year |",
        "|---|---|---|---|---|---|---|",
    ]
    for people in PEOPLE:
        needs = size(people, costs)
        database = f"{needs.database_cores:.2f}" if needs.database_cores else ""
        lines.append(
            f"| {people:,} | {needs.per_second:.2f} | {needs.turns} | {needs.advice} "
            f"| {needs.bridge_cores:.2f} | {database} | {needs.gib_per_year:.1f} GiB |"
        )
    return "\n".join(lines) + "\n"


def plot(systems: Sequence[System], path: Path) -> None:
    """Draw how long messages wait (p95) at each rate, one line per system."""
    most = max(step.per_second for system in systems for step in system.steps)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 40}" '
        f'height="{_TOP + _HEIGHT + 60 + 18 * len(systems)}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for seconds in (0.01, 0.1, 1.0, 10.0, 100.0):
        y = _y(seconds)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y}" x2="{_LEFT + _WIDTH}" y2="{y}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" fill="#555">{seconds:g} s</text>'
        )
    late = _y(LATE_SECONDS)
    parts.append(
        f'<line x1="{_LEFT}" y1="{late}" x2="{_LEFT + _WIDTH}" y2="{late}" stroke="#333" '
        f'stroke-dasharray="4"/><text x="{_LEFT + 4}" y="{late - 4}" fill="#333">saturated</text>'
    )
    for number, system in enumerate(systems):
        color = _COLORS[number % len(_COLORS)]
        points = [
            (_LEFT + round(step.per_second / most * _WIDTH), _y(step.wait_p95))
            for step in system.steps
        ]
        line = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in points]
        top = _TOP + _HEIGHT + 50 + 18 * number
        parts.append(
            f'<rect x="{_LEFT}" y="{top - 9}" width="12" height="10" fill="{color}"/>'
            f'<text x="{_LEFT + 18}" y="{top}">{html.escape(system.name)}</text>'
        )
    parts += [
        f'<text x="{_LEFT}" y="{_TOP - 10}" fill="#555">until the agent has read a message, p95'
        "</text>",
        f'<text x="{_LEFT + _WIDTH}" y="{_TOP + _HEIGHT + 24}" text-anchor="end" fill="#555">'
        f"messages per second, up to {most:g}</text>",
        "</svg>",
    ]
    path.write_text("\n".join(parts) + "\n")


def _y(seconds: float) -> int:
    bounded = min(max(seconds, _LOWEST), _HIGHEST)
    share = log10(bounded / _LOWEST) / log10(_HIGHEST / _LOWEST)
    return _TOP + round(_HEIGHT * (1 - share))
