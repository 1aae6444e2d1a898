"""Agent Bridge: coding agents in the places where a team already talks."""
