"""Places in which agents work for agents: always there, and silent."""
