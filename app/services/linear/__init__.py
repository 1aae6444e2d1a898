"""Linear as a service: one app user per agent, told of its work by webhooks."""
