"""Joins the parts into a bridge and runs it; the only place that knows them all."""

from app.acp.launch import launches
from app.main.bridge import Bridge
from app.main.presence import presence
from app.main.resources import Resources, bridge_id, open_resources
from app.main.serving import bind_ports, serve

__all__ = [
    "Bridge",
    "Resources",
    "bind_ports",
    "bridge_id",
    "launches",
    "open_resources",
    "presence",
    "serve",
]
