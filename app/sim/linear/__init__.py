"""The simulated Linear: one workspace with GraphQL, tokens and signed webhooks on loopback."""

from __future__ import annotations

from app.sim.linear.server import Linear
from app.sim.linear.workspace import App, Comment, Issue, LinearSession, Person

__all__ = ["App", "Comment", "Issue", "Linear", "LinearSession", "Person"]
