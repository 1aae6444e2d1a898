"""The simulated Linear: one workspace with GraphQL, tokens and signed webhooks on loopback."""

from __future__ import annotations

from sim.linear.records import Anchor, App, Comment, Issue, LinearSession, Person
from sim.linear.server import Linear

__all__ = ["Anchor", "App", "Comment", "Issue", "Linear", "LinearSession", "Person"]
