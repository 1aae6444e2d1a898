"""Serves HTTP: the front for webhooks, the API, the page, health and metrics."""
