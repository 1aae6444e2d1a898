"""The simulated Linear: one workspace with GraphQL, tokens and signed webhooks on loopback."""

from __future__ import annotations

from tests.sim.linear.records import App, Comment, Issue, LinearSession, Person
from tests.sim.linear.server import Linear

__all__ = ["App", "Comment", "Issue", "Linear", "LinearSession", "Person"]
