"""Runs the simulated Slack by hand: `python -m app.sim AGENT ...`."""

from __future__ import annotations

import argparse
import sys

from app.sim.shell import Shell
from app.sim.slack_server import SimulatedSlack


def main() -> None:
    """Print the settings a bridge needs, then read what a person writes, line by line."""
    parser = argparse.ArgumentParser(
        prog="python -m app.sim",
        description="A simulated Slack on this machine: talk to agents without a workspace. It "
        "prints the settings that point a bridge to it, and keeps nothing when it quits.",
    )
    parser.add_argument(
        "agents",
        nargs="*",
        metavar="AGENT",
        default=["demo"],
        help="agents of the bridge that get an app there (default: demo)",
    )
    agents = parser.parse_args().agents
    with SimulatedSlack() as slack, Shell(slack, agents, sys.stdout) as shell:
        for line in sys.stdin:
            shell.write(line.strip())


if __name__ == "__main__":
    main()
