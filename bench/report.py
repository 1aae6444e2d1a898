"""Shows what was measured: a table in the terminal, a plot, and both in the documentation."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from math import log2
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.figures import Gap, Row

BEGIN = "<!-- bench: written by `make bench ARGS=--write` -->\n"
END = "<!-- end of bench -->\n"

_LINE = 30
_LEFT, _WIDTH, _RIGHT = 400, 340, 90
_LOWEST, _HIGHEST = 1 / 4, 16.0  # of the goal; what is beyond is drawn at the edge
_COLORS = {"ok": "#2a9d5c", "not yet": "#d97706"}


def show(rows: Sequence[Row | Gap], console: Console) -> None:
    """Print the table."""
    table = Table(box=None, pad_edge=False)
    for heading in ("reached", "goal", "", "what"):
        table.add_column(heading, justify="left" if heading == "what" else "right", no_wrap=True)
    table.columns[-1].no_wrap = False
    for row in rows:
        color = {"ok": "green", "not yet": "yellow", "failed": "red"}.get(row.verdict, "dim")
        if isinstance(row, Gap):
            table.add_row("", "", f"[{color}]{row.verdict}[/]", f"{row.what}\n{escape(row.why)}")
            continue
        table.add_row(
            row.shown,
            row.wanted,
            f"[{color}]{row.verdict}[/]",
            f"{row.what}, against {row.against}\n[dim]{row.detail}[/]",
        )
    console.print(table)


def markdown(rows: Iterable[Row], machine: str) -> str:
    """Write the table for the documentation."""
    lines = [
        f"Measured on: {machine}.",
        "",
        "| what | against | reached | goal | | behind it |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {' | '.join((row.what, row.against, row.shown, row.wanted, row.verdict, row.detail))} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def insert(page: str, table: str, *, begin: str = BEGIN, end: str = END) -> str:
    """Put a new table in the place of the old one."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def plot(rows: Iterable[Row], path: Path) -> None:
    """Draw how far every row with a goal has come; the goal is the line, longer is better."""
    bars = [row for row in rows if row.goal is not None]
    height = _LINE * len(bars) + 70
    goal = _LEFT + _position(1.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{goal}" y="20" text-anchor="middle" fill="#555">goal</text>',
    ]
    parts += [_bar(row, 34 + _LINE * number) for number, row in enumerate(bars)]
    parts += [
        f'<line x1="{goal}" y1="26" x2="{goal}" y2="{height - 34}" stroke="#333"/>',
        f'<text x="{_LEFT}" y="{height - 12}" fill="#555">'
        "a quarter of the goal &#8592; logarithmic, longer is better &#8594; 16 times</text>",
        "</svg>",
    ]
    path.write_text("\n".join(parts) + "\n")


def _bar(row: Row, top: int) -> str:
    assert row.goal is not None
    width = _position(row.goal.closeness(row.figure))
    middle = top + 13
    return (
        f'<text x="{_LEFT - 10}" y="{middle - 2}" text-anchor="end">{html.escape(row.what)}</text>'
        f'<text x="{_LEFT - 10}" y="{middle + 10}" text-anchor="end" font-size="10" fill="#777">'
        f"against {html.escape(row.against)}</text>"
        f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{_LINE - 12}" '
        f'fill="{_COLORS[row.verdict]}"/>'
        f'<text x="{_LEFT + width + 6}" y="{middle}">{html.escape(row.shown)}</text>'
    )


def _position(closeness: float) -> int:
    bounded = min(max(closeness, _LOWEST), _HIGHEST)
    return 2 + round((_WIDTH - 2) * log2(bounded / _LOWEST) / log2(_HIGHEST / _LOWEST))
