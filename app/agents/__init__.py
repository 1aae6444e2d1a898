"""Who the agents are: the registry, and what is known about agent programs."""
