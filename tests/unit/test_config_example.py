"""The example file names every setting and nothing else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from pydantic import BaseModel

from app.agents.catalog import known_agents
from app.config import load, settings
from app.config.remote import AGENT_TOKEN
from app.services import registered_services

EXAMPLE = Path(__file__).parents[2] / ".env.example"
LINES = EXAMPLE.read_text().splitlines()
SETTING = re.compile(r"#([A-Z][A-Z0-9_]*)=(.*)")

MODEL_VARIABLES = {variable for program in known_agents() for variable in program.env}
PLAIN = {
    *settings.NAMES,
    *(name for each in registered_services() for name in each.settings.names().values()),
}
CREDENTIALS = {name for each in registered_services() for name in each.credentials.names().values()}
EVERY_NAME = PLAIN | CREDENTIALS | MODEL_VARIABLES | {AGENT_TOKEN}


def examples() -> dict[str, str]:
    """Collect the settings of the example with their example values."""
    return {match[1]: match[2] for line in LINES if (match := SETTING.fullmatch(line))}


def test_the_example_names_exactly_the_settings() -> None:
    settings_named = [line for line in LINES if SETTING.fullmatch(line)]

    assert set(examples()) == EVERY_NAME
    assert len(settings_named) == len(EVERY_NAME)


def test_the_model_keys_that_users_rely_on_are_known() -> None:
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"} <= MODEL_VARIABLES


def test_every_setting_has_one_line_of_comment() -> None:
    numbers = [number for number, line in enumerate(LINES) if SETTING.fullmatch(line)]

    assert [LINES[number] for number in numbers if not LINES[number - 1].startswith("# ")] == []
    assert [LINES[number] for number in numbers if LINES[number - 2].startswith("# ")] == []


def test_the_example_loads_as_it_stands(tmp_path: Path) -> None:
    configuration = load(
        {"PATH": ""},
        known=known_agents(),
        dotenv=EXAMPLE,
        services=registered_services(),
        home=tmp_path,
    )

    assert configuration.agents_source == "demo"


def test_the_defaults_it_shows_are_the_defaults(tmp_path: Path) -> None:
    plain = load({"PATH": ""}, services=registered_services(), home=tmp_path)
    models: list[tuple[type[BaseModel], Iterable[str]]] = [
        (settings.Settings, settings.NAMES),
        *((each.settings, each.settings.names().values()) for each in registered_services()),
    ]
    fixed = {
        name
        for model, names in models
        for name, field in zip(names, model.model_fields.values(), strict=True)
        if isinstance(field.default, str | int | float)
    }

    shown = {name: examples()[name] for name in (*fixed, "DATA_DIR")}

    given = load({"PATH": "", **shown}, services=registered_services(), home=tmp_path)

    assert len(fixed) > 15
    assert given.settings.model_copy(update={"data_dir": None}) == plain.settings
    assert (
        dataclasses.replace(given, settings=plain.settings, surroundings=plain.surroundings)
        == plain
    )


OPTIONAL = sorted(name for name, value in examples().items() if value and name in PLAIN)


@pytest.mark.parametrize("name", OPTIONAL)
def test_every_example_value_is_accepted(name: str, tmp_path: Path) -> None:
    value = examples()[name].replace("<user id>", "2f6a")

    configuration = load(
        {"PATH": "", name: value},
        known=known_agents(),
        services=registered_services(),
        home=tmp_path,
    )

    assert configuration.services == ("web",)
