"""Measures where the bridge saturates: one on SQLite, and PostgreSQL with 1, 2 and 4 workers.

Run as `make bench-scale`; `ARGS=--write` puts curves and tables into docs/scale.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench import curves, report
from bench.arrivals import Traffic
from bench.machine import ROOT, busy, description
from bench.sizing import Costs
from bench.systems import AGENTS, PLACES, System, fleet, sqlite

PAGE = ROOT / "docs" / "scale.md"
PLOT = ROOT / "docs" / "scale.svg"
RATES = (1.0, 2.0, 4.0, 8.0, 16.0)
STEP_SECONDS = 20.0
WORKERS = (1, 2, 4)


def main(arguments: Sequence[str]) -> int:
    """Measure every system until it saturates."""
    options = _options(arguments)
    console = Console(highlight=False)
    systems: list[System] = []
    stored_bytes = 0.0
    seconds, rates = (5.0, RATES[:2]) if options.quick else (STEP_SECONDS, RATES)
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        for number, opened in enumerate(
            [sqlite, *(lambda path, count=count: fleet(path, count) for count in WORKERS)]
        ):
            with opened(Path(folder) / str(number)) as system:
                systems.append(system)
                _climb(system, rates, seconds, console)
                # The file is gone once the system is.
                stored_bytes = stored_bytes or system.stored_bytes
    machine = description([])
    if busy():
        console.print("[yellow]Others use this machine too: trust the CPU figures only.[/]")
    tables = curves.markdown(systems, _costs(systems, stored_bytes), machine)
    console.print(tables)
    if options.write:
        curves.plot(systems, PLOT)
        page = PAGE.read_text()
        PAGE.write_text(report.insert(page, tables, begin=curves.BEGIN, end=curves.END))
        console.print(f"Written: {PAGE}")
    return 0


def _climb(system: System, rates: Sequence[float], seconds: float, console: Console) -> None:
    """Raise the rate until the system is saturated."""
    traffic = Traffic(PLACES, AGENTS, rates[0], seconds)
    system.warm_up(traffic)
    for seed, rate in enumerate(rates, 2):
        with console.status(f"{system.name}, {rate:g} messages/s ..."):
            step = system.run(replace(traffic, per_second=rate, seed=seed))
        if step.saturated:
            return


def _costs(systems: Sequence[System], stored_bytes: float) -> Costs:
    """Take the costs at the highest rate that each system bears: what is done once counts least."""
    alone, many = systems[0], systems[-1]
    return Costs(
        bridge=alone.borne.cpu["bridge"],
        front=many.borne.cpu["front"],
        worker=many.borne.cpu["worker"],
        database=many.borne.cpu["database"],
        stored_bytes=stored_bytes,
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two low rates: to see that it works")
    parser.add_argument("--write", action="store_true", help=f"update {PAGE.name}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
