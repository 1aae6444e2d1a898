"""`manifest`: what an agent's app on a platform is made from, and the steps to make it."""

from __future__ import annotations

import json

import typer

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.config import Configuration
from app.services.linear import manifest as linear_app
from app.services.slack import manifest as slack_app


def slack(configuration: Configuration, agent: str) -> None:
    """Print the manifest of an agent's Slack app on stdout, and the steps on stderr.

    Raises:
        NotFound: there is no such agent.
    """
    registry = Registry(configuration, known_agents())
    entry = registry.get(agent)
    name = registry.display_name(agent)
    made = slack_app.manifest(name, entry.description or "")
    typer.echo(json.dumps(made, indent=2, ensure_ascii=False))
    typer.echo(slack_app.steps(name, "" if entry.default else f"__{entry.suffix}"), err=True)


def linear(configuration: Configuration, agent: str) -> str:
    """Say how to put an agent into Linear.

    Raises:
        NotFound: there is no such agent.
    """
    registry = Registry(configuration, known_agents())
    entry = registry.get(agent)
    return linear_app.steps(
        agent,
        name=registry.display_name(agent),
        base_url=configuration.base_url,
        path="/webhooks/linear" if entry.default else f"/webhooks/linear/{agent}",
        suffix="" if entry.default else f"__{entry.suffix}",
    )
