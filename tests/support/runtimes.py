"""Runtimes for tests that need only some of a bridge."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from app.agents.catalog import known_agents
from app.agents.registry import Registry, open_registry
from app.config import load
from app.core.runtime import Runtime
from app.services import registered_services


def make_runtime(**used: Any) -> Runtime:
    """Make a runtime of the parts that a test uses; the others are missing."""
    missing: dict[str, Any] = dict.fromkeys(field.name for field in fields(Runtime))
    return Runtime(**missing | used)


def make_registry(folder: Path, **agents: Any) -> Registry:
    """Make a registry of these entries; nothing is started."""
    given = {"AGENTS_JSON": json.dumps(agents), "DATA_DIR": str(folder / "data"), "PATH": ""}
    configuration = load(
        given, known=known_agents(), services=registered_services(), home=folder / "home"
    )
    return open_registry(configuration, ())
