"""Defines what the folder of a feature exports: names of what it adds, imported when it is used.

The rest of the code loops over the list of features and names none of them. The value is light, so
that the command line can look at it without importing a web framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fastapi import APIRouter

    from app.core.runtime import Runtime
    from app.features.part import Part
    from app.model.agents import Tool

GROUP = "agent_bridge.features"
"""The group of entry points by which other packages add features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One capability; each reference is `module:attribute` below its package."""

    name: str
    """One word of lower-case letters."""
    package: str
    part: str = ""
    """The class of its part, which takes the runtime; empty if a running bridge needs none."""
    routes: tuple[str, ...] = ()
    """The routers of the API and of the page."""
    rights: Mapping[str, str] = field(default_factory=dict)
    """What each of its routes needs, as in `app/server/rights.py`: `{"GET /dice": "viewer"}`. Those
    of built-in features are in that table itself."""
    tools: str = ""
    """The function that takes its part and lists the tools that agents get."""
    needs: tuple[str, ...] = ()
    """The features that it builds on, by their `service`; without one of them it is left out."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """What its module `cli` adds to the command line: commands and groups with their help lines."""

    def build(self, runtime: Runtime) -> Part:
        """Build its part of one bridge."""
        from app.features.part import Part  # noqa: PLC0415 - it imports a web framework

        part: Part = (self._load(self.part) if self.part else Part)(runtime)
        return part

    def list_tools(self, part: Part) -> Iterable[Tool]:
        """List the tools that agents get."""
        tools: Iterable[Tool] = self._load(self.tools)(part) if self.tools else ()
        return tools

    def routers(self) -> Sequence[APIRouter]:
        """Return its routes."""
        return [self._load(reference) for reference in self.routes]

    def _load(self, reference: str) -> Any:
        module, _, attribute = reference.partition(":")
        return getattr(import_module(f"{self.package}.{module}"), attribute)
