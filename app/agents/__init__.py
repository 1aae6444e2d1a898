"""Describes the agents: the registry, and the facts about known agent programs."""
