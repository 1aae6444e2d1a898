"""Joins the parts into a bridge and runs it; the only place that knows them all."""

from app.main.bridge import Bridge
from app.main.foundation import Foundation, bridge_id, founded
from app.main.launching import launches
from app.main.platforms import Platforms, platforms
from app.main.serving import serve

__all__ = [
    "Bridge",
    "Foundation",
    "Platforms",
    "bridge_id",
    "founded",
    "launches",
    "platforms",
    "serve",
]
