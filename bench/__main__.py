"""Measures, shows the table, draws the plot; `--write` puts both into docs/performance.md.

A measurement that cannot prove its work fails the bench, and then nothing is written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from bench import (
    accept,
    changes,
    clone,
    cold,
    database,
    delegation,
    memory,
    page,
    report,
    restart,
    socket_mode,
    steering,
    stream,
    tools,
)
from bench.figures import FULL, QUICK, Gap, Row, Scale
from bench.machine import ROOT, busy, description

PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "performance.svg"
PACKAGES = (
    "uvicorn",
    "uvloop",
    "sqlalchemy",
    "starlette",
    "gidgethub",
    "aiohttp",
    "slack-bolt",
    "agent-client-protocol",
    "mcp",
)

MEASUREMENTS: dict[str, Callable[[Scale, Path], Iterator[Row | Gap]]] = {
    "accept": accept.measure,
    "socket": socket_mode.measure,
    "stream": stream.measure,
    "cold": cold.measure,
    "clone": clone.measure,
    "restart": restart.measure,
    "start": restart.measure_start,
    "memory": memory.measure,
    "page": page.measure,
    "changes": changes.measure,
    "tools": tools.measure,
    "delegation": delegation.measure,
    "steering": steering.measure,
    "database": database.measure,
}


def main(arguments: Sequence[str]) -> int:
    """Measure what the command line names; returns the exit code, which is 1 if a row failed."""
    options = _options(arguments)
    console = Console(highlight=False)
    results: list[Row | Gap] = []
    for name in options.only or MEASUREMENTS:
        with console.status(f"measuring {name} ..."):
            results += measured(name, QUICK if options.quick else FULL)
    machine = description([(name, version(name)) for name in PACKAGES])
    console.print(machine)
    if busy():
        console.print("[yellow]Others use this machine too: trust the CPU figures only.[/]")
    report.show(results, console)
    rows = [row for row in results if isinstance(row, Row)]
    gaps = [gap for gap in results if isinstance(gap, Gap)]
    if options.write and gaps:
        console.print(f"[red]Nothing is written: {len(gaps)} measurements have no figure.[/]")
        return 1
    plot = PLOT if options.write else Path(options.plot)
    report.plot(rows, plot)
    console.print(f"Plot: {plot}")
    if options.write:
        PAGE.write_text(report.insert(PAGE.read_text(), report.markdown(rows, machine)))
        console.print(f"Written: {PAGE}")
    return int(any(gap.failed for gap in gaps))


def measured(name: str, scale: Scale) -> Iterator[Row | Gap]:
    """Run one measurement; if it fails, the reason takes the place of its rows."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            yield from MEASUREMENTS[name](scale, Path(folder))
        except Exception as failure:  # noqa: BLE001 - one fails, the others are measured
            yield Gap(name, str(failure) or type(failure).__name__, failed=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats: to see that it works")
    parser.add_argument(
        "--only", action="append", choices=MEASUREMENTS, help="one measurement; may be repeated"
    )
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    parser.add_argument(
        "--plot",
        default=str(Path(tempfile.gettempdir()) / "agent-bridge-bench.svg"),
        help="where the plot goes without --write",
    )
    options = parser.parse_args(arguments)
    if options.write and options.only:
        parser.error("--write takes the whole table, not a part of it")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
