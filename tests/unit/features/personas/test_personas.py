"""Who an agent is, from what is there: its files, those of all, its entry, its colleagues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from app.agents.catalog import known_agents
from app.agents.files import AgentFiles
from app.agents.registry import Registry, label
from app.config import load
from app.core.hooks import Hook, Hooks
from app.core.turns.prompt import SystemPrompt
from app.features.personas.service import Personas
from app.model.keys import SessionKey
from app.services import registered_services
from app.vault import Vault

ADA = SessionKey("web", "t1", "ada")


class Told:
    """An agent called ada, with or without others."""

    def __init__(self, folder: Path, ada: dict[str, Any], **others: dict[str, Any]) -> None:
        self.files = AgentFiles(folder, Vault())
        self.registry = Registry(_load(folder, ada, others))
        runtime: Any = SimpleNamespace(files=self.files, agents=self.registry)
        self.personas = Personas(runtime)

    async def read(self) -> SystemPrompt:
        """Read what Ada is told at the beginning of a conversation."""
        return SystemPrompt(**await self.personas.system_parts(ADA, 1))

    def put(self, owner: str | None, path: str, text: str) -> None:
        self.files.write(owner, path, text)


def _load(folder: Path, ada: dict[str, Any], others: dict[str, Any]) -> Any:
    given = {name: {"command": "x", **entry} for name, entry in {"ada": ada, **others}.items()}
    environ = {"AGENTS_JSON": json.dumps(given)}
    return load(environ, known=known_agents(), services=registered_services(), home=folder / "home")


@pytest.mark.parametrize(
    ("identity", "entry", "base"),
    [
        (
            "---\nname: Ada\n---\nFile.",
            {"prompt": "Entry.", "description": "D."},
            "Your name is Ada.\n\nFile.",
        ),
        ("", {"prompt": "Entry.", "display_name": "A"}, "Entry."),
        (None, {"prompt": "Entry."}, "Entry."),
        (None, {"display_name": "Ada L.", "description": "Counts."}, "You are Ada L. Counts."),
        (None, {"description": "Counts."}, "You are ada. Counts."),
        (None, {"display_name": "Ada"}, "You are Ada."),
        (None, {}, ""),
    ],
)
async def test_the_base_is_the_file_else_the_prompt_else_the_description_else_nothing(
    tmp_path: Path, identity: str | None, entry: dict[str, Any], base: str
) -> None:
    told = Told(tmp_path, entry)
    if identity is not None:
        told.put("ada", "IDENTITY.md", identity)

    assert (await told.read()).base == base


@pytest.mark.parametrize(("own", "shared"), [*product([None, "", "own"], [None, "all"])])
async def test_an_own_file_replaces_that_of_all_also_if_it_is_empty(
    tmp_path: Path, own: str | None, shared: str | None
) -> None:
    told = Told(tmp_path, {})
    for path in ("AGENTS.md", "TOOLS.md"):
        for owner, text in (("ada", own), (None, shared)):
            if text is not None:
                told.put(owner, path, text)
    told.put(None, "USER.md", "us")
    told.put("ada", "SOUL.md", "soul")
    told.put("ada", "MEMORY.md", "memory")

    found = await told.read()

    expected = (shared or "") if own is None else own
    assert (found.agents, found.tools) == (expected, expected)
    assert (found.soul, found.user, found.memory) == ("soul", "us", "memory")


async def test_a_change_is_seen_at_once_and_nothing_is_read_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, {})
    told.put("ada", "SOUL.md", "one")
    assert (await told.read()).soul == "one"

    with monkeypatch.context() as still:
        still.setattr(told.files, "read", None)
        assert (await told.read()).soul == "one"
    told.put("ada", "SOUL.md", "two")
    assert (await told.read()).soul == "two"
    (tmp_path / "agents" / "ada" / "SOUL.md").unlink()
    assert (await told.read()).soul == ""


class Skilled(Hook):
    """Tells of skills, and as of which turn."""

    @override
    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        return {"tools": f"skills of {surface.agent}", "colleagues": f"as of {turn}"}


async def test_what_others_add_is_joined_with_the_files(tmp_path: Path) -> None:
    told = Told(tmp_path, {})
    told.put("ada", "TOOLS.md", "Use make.")

    found = await Hooks(told.personas, Skilled()).system_parts(ADA, 7)

    assert (found["tools"], found["colleagues"]) == ("Use make.\n\nskills of ada", "as of 7")


def test_people_see_the_name_of_the_file_unless_the_entry_has_one(tmp_path: Path) -> None:
    told = Told(tmp_path, {}, bob={"display_name": "Bob"})
    for agent in ("ada", "bob"):
        told.put(agent, "IDENTITY.md", "---\nname: Nemo\nemoji: \N{OWL}\ncolour: teal\n---\n")

    told.registry.replace(label(told.registry.configuration, told.files), ())

    ada = told.registry["ada"].config
    assert [told.registry[name].title for name in ("ada", "bob")] == ["Nemo", "Bob"]
    assert (ada.own_emoji, ada.own_colour) == ("\N{OWL}", "teal")
