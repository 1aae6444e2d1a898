"""Slack: one app per agent, over Socket Mode."""
