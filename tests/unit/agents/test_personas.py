"""Who an agent is, from what is there: its files, those of all, its entry, its colleagues."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.agents.files import AgentFiles
from app.agents.personas import AgentPersonas, label
from app.agents.registry import Registry
from app.config import load
from app.model.keys import SessionKey
from app.services import registered_services
from app.vault import Vault

ADA = SessionKey("web", "t1", "ada")


class Told:
    """An agent called ada, with or without others."""

    def __init__(self, folder: Path, ada: dict[str, Any], **others: dict[str, Any]) -> None:
        self.files = AgentFiles(folder, Vault())
        self.registry = Registry(_load(folder, ada, others))
        self.personas = AgentPersonas(self.files, self.registry)

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

    assert (await told.personas.system_prompt(ADA, 1)).base == base


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

    found = await told.personas.system_prompt(ADA, 1)

    expected = (shared or "") if own is None else own
    assert (found.agents, found.tools) == (expected, expected)
    assert (found.soul, found.user, found.memory) == ("soul", "us", "memory")


async def test_a_change_is_seen_at_once_and_nothing_is_read_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, {})
    told.put("ada", "SOUL.md", "one")
    assert (await told.personas.system_prompt(ADA, 1)).soul == "one"

    with monkeypatch.context() as still:
        still.setattr(told.files, "read", None)
        assert (await told.personas.system_prompt(ADA, 1)).soul == "one"
    told.put("ada", "SOUL.md", "two")
    assert (await told.personas.system_prompt(ADA, 1)).soul == "two"
    (tmp_path / "agents" / "ada" / "SOUL.md").unlink()
    assert (await told.personas.system_prompt(ADA, 1)).soul == ""


async def test_skills_and_colleagues_are_told_as_of_the_turn(tmp_path: Path) -> None:
    told = Told(tmp_path, {})
    told.put("ada", "TOOLS.md", "Use make.")
    personas = AgentPersonas(
        told.files, told.registry, lambda agent: f"skills of {agent}", lambda *asked: repr(asked)
    )

    found = await personas.system_prompt(ADA, 7)

    assert (found.tools, found.colleagues) == ("Use make.\n\nskills of ada", "('ada', 7)")


def test_people_see_the_name_of_the_file_unless_the_entry_has_one(tmp_path: Path) -> None:
    told = Told(tmp_path, {}, bob={"display_name": "Bob"})
    for agent in ("ada", "bob"):
        told.put(agent, "IDENTITY.md", "---\nname: Nemo\nemoji: \N{OWL}\ncolour: teal\n---\n")

    told.registry.replace(label(told.registry.configuration, told.files), ())

    ada = told.registry["ada"].config
    assert [told.registry[name].title for name in ("ada", "bob")] == ["Nemo", "Bob"]
    assert (ada.own_emoji, ada.own_colour) == ("\N{OWL}", "teal")
