"""Joins the parts into a bridge and runs it; the only place that knows them all."""

from app.main.bridge import Bridge
from app.main.resources import Resources, open_resources, presence
from app.main.serving import bind_ports, serve

__all__ = [
    "Bridge",
    "Resources",
    "bind_ports",
    "open_resources",
    "presence",
    "serve",
]
