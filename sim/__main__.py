"""Runs a simulated platform by hand: `python -m sim slack AGENT ...`."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager

from sim.shell import Shell, Visitor

BRIDGE = "http://127.0.0.1:8000"
"""Where `agent-bridge serve` listens unless it is told otherwise."""


def main() -> None:
    """Print the settings a bridge needs, then read what a person writes, line by line."""
    parser = argparse.ArgumentParser(
        prog="python -m sim",
        description="A simulated platform on this machine: talk to agents without an account. It "
        "prints the settings that point a bridge to it, and keeps nothing when it quits.",
    )
    platforms = parser.add_subparsers(dest="platform", metavar="PLATFORM", required=True)
    for name, title in (("slack", "Slack"), ("github", "GitHub"), ("linear", "Linear")):
        one = platforms.add_parser(name, help=f"simulated {title}")
        one.add_argument(
            "agents",
            nargs="*",
            metavar="AGENT",
            default=["demo"],
            help="agents of the bridge that get an app there (default: demo)",
        )
        if name != "slack":
            one.add_argument(
                "--bridge",
                default=BRIDGE,
                metavar="URL",
                help="where the bridge takes webhooks (default: %(default)s)",
            )
    given = parser.parse_args()
    with _visit(given) as visitor, Shell(visitor, given.agents, sys.stdout) as shell:
        for line in sys.stdin:
            shell.write(line.strip())


def _visit(given: argparse.Namespace) -> AbstractContextManager[Visitor]:
    """Start a platform; only Linear needs graphql-core, which `make setup` does not install."""
    if given.platform == "slack":
        from sim.slack import visitor as slack  # noqa: PLC0415 - see above

        return slack.visit(given.agents)
    if given.platform == "github":
        from sim.github import visitor as github  # noqa: PLC0415 - see above

        return github.visit(given.agents, given.bridge)
    from sim.linear import visitor as linear  # noqa: PLC0415 - see above

    return linear.visit(given.agents, given.bridge)


if __name__ == "__main__":
    main()
