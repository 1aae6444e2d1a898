"""`manifest`: what an agent's app on a platform is made from, and the steps to make it."""

from __future__ import annotations

import json

import typer

from app.config import Configuration
from app.errors import NotFound
from app.services.slack.manifest import manifest, steps


def slack(configuration: Configuration, agent: str) -> None:
    """Print the manifest of an agent's Slack app on stdout, and the steps on stderr.

    Raises:
        NotFound: there is no such agent.
    """
    entry = configuration.agents.get(agent)
    if entry is None:
        raise NotFound("agent", agent)
    name = entry.display_name or agent
    typer.echo(json.dumps(manifest(name, entry.description or ""), indent=2, ensure_ascii=False))
    typer.echo(steps(name, "" if entry.default else f"__{entry.suffix}"), err=True)
