"""Talks ACP with agent processes and translates it to and from the core's types."""
