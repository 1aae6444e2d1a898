"""Prints tables: drawn on a terminal, plain columns elsewhere; and JSON for scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from app.cli.lines import columns, one_line


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows under a header."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(header, clean)
    else:
        for line in columns([[name.upper() for name in header], *clean]):
            sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")
    sys.stdout.flush()


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # 0.1 s that only a person pays for.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    names = [Column(name, overflow="fold") for name in header]
    table = Table(*names, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
