"""The simulated Slack: one workspace with Web API and Socket Mode on loopback."""
