"""Connects the page and the API with the core, as a service like all others."""
