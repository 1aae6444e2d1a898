"""Runs the simulated Slack by hand: `python -m app.sim AGENT ...`."""

from __future__ import annotations

import sys

from app.sim.shell import Shell
from app.sim.slack_server import SimulatedSlack


def main(agents: list[str]) -> None:
    """Print what a bridge needs to know of it, then take what a person writes, line by line."""
    with SimulatedSlack() as slack, Shell(slack, agents or ["demo"], sys.stdout) as shell:
        for line in sys.stdin:
            shell.write(line.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
