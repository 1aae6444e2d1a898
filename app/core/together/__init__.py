"""Agents that work together on one thing: a review in rounds, a panel, a race."""
