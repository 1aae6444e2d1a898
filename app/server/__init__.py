"""The HTTP side: the front for webhooks, the API, health and metrics."""
