"""Writes the bridge's tools as a command on an agent's PATH, with a SKILL.md for each.

They are in the folder of the agent's door, never in its repository.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from app.model.tools import COMMAND, SKILL, Tool

BIN: Final = "bin"
SKILLS: Final = "skills"


def write_skills(folder: Path, relay: Sequence[str], tools: Iterable[Tool]) -> None:
    """Write the command, which runs the relay, and the file about each tool."""
    words = " ".join(shlex.quote(word) for word in relay)
    _write(folder / BIN / COMMAND, f'#!/bin/sh\nexec {words} call "$@"\n')
    for tool in tools:
        _write(folder / SKILLS / skill_name(tool) / "SKILL.md", _describe(tool))


def skill_name(tool: Tool) -> str:
    """Return the name of a tool as a skill: those take no underscores (agentskills.io)."""
    return tool.name.replace("_", "-")


def _describe(tool: Tool) -> str:
    schema = json.dumps(tool.schema, indent=2, ensure_ascii=False)
    return SKILL.format(
        name=skill_name(tool),
        summary=json.dumps(tool.description, ensure_ascii=False),
        tool=tool.name,
        description=tool.description,
        command=COMMAND,
        schema=schema,
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
