"""`manifest`: what to paste into a platform so that an agent can be there."""

from __future__ import annotations

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.config import Configuration
from app.services.linear import manifest as linear_manifest


def linear(configuration: Configuration, agent: str) -> str:
    """Say how to put an agent into Linear.

    Raises:
        NotFound: there is no such agent.
    """
    registry = Registry(configuration, known_agents())
    entry = registry.get(agent)
    return linear_manifest.steps(
        agent,
        name=registry.display_name(agent),
        base_url=configuration.base_url,
        path="/webhooks/linear" if entry.default else f"/webhooks/linear/{agent}",
        suffix="" if entry.default else f"__{entry.suffix}",
    )
