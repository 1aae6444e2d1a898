"""What is set for single repositories: checked at the start, and secret where it promises to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.config import Configuration, load
from app.errors import ConfigurationError
from app.services import registered_services

CANARY = "canary-4711-canary"
NAME = "acme/app"


def configured(tmp_path: Path, entries: Any, **environ: str) -> Configuration:
    """Load a configuration with these entries."""
    given = {"PATH": "", "REPOSITORIES_JSON": json.dumps(entries), **environ}
    return load(given, services=registered_services(), home=tmp_path)


def variables(configuration: Configuration, name: str = NAME) -> Mapping[str, str]:
    """Open what a repository gives."""
    given = configuration.repositories[name].env
    return {variable: value.get_secret_value() for variable, value in given.items()}


def test_nothing_is_set_for_any_repository_by_itself(tmp_path: Path) -> None:
    assert load({"PATH": ""}, services=registered_services(), home=tmp_path).repositories == {}


def test_a_repository_has_variables_and_a_way_of_being_fetched(tmp_path: Path) -> None:
    entry = {"env": {"NODE_ENV": "test"}, "env_passthrough": ["API_TOKEN"], "clone": "shallow"}

    configuration = configured(tmp_path, {NAME: entry, "acme/lib": {}}, API_TOKEN=CANARY)

    assert variables(configuration) == {"NODE_ENV": "test", "API_TOKEN": CANARY}
    assert configuration.repositories[NAME].clone == "shallow"
    assert variables(configuration, "acme/lib") == {}
    assert configuration.repositories["acme/lib"].clone == "full"


def test_a_secret_of_a_repository_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{CANARY}\n")
    entries = {NAME: {"env_passthrough": ["API_TOKEN"]}}

    configuration = configured(tmp_path, entries, API_TOKEN_FILE=f"{tmp_path}/secret")

    assert variables(configuration) == {"API_TOKEN": CANARY}
    assert tmp_path / "secret" in configuration.secret_files


def test_all_of_it_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "all").write_text(json.dumps({NAME: {"env": {"A": "1"}}}))

    configuration = load(
        {"PATH": "", "REPOSITORIES_JSON_FILE": f"{tmp_path}/all"},
        services=registered_services(),
        home=tmp_path,
    )

    assert variables(configuration) == {"A": "1"}


@pytest.mark.parametrize(
    ("entry", "environ"),
    [
        ({"env": {"API_TOKEN": CANARY}}, {}),
        ({"env_passthrough": ["API_TOKEN"]}, {"API_TOKEN": CANARY}),
    ],
)
def test_secrets_of_repositories_are_known_to_the_bridge_and_to_no_child(
    tmp_path: Path, entry: dict[str, Any], environ: dict[str, str]
) -> None:
    configuration = configured(tmp_path, {NAME: entry}, **environ)

    assert CANARY in set(configuration.secret_values())
    assert {"REPOSITORIES_JSON", *environ} <= set(configuration.secret_names)
    assert CANARY not in repr(configuration)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([CANARY], "is not a JSON object"),
        ({CANARY: {}}, "the name of repository 1 is not valid"),
        ({f"https://user:{CANARY}@e.com/x": {}}, "the name of repository 1 is not valid"),
        ({NAME: CANARY}, "repository 1 is not an object"),
        ({NAME: {"cloen": CANARY}}, "Did you mean clone?"),
        ({NAME: {CANARY: 1}}, "The keys are env, env_passthrough, clone"),
        ({NAME: {"env": [CANARY]}}, "repository 1: env is not an object"),
        ({NAME: {"env": {CANARY: "x"}}}, "is not a variable name"),
        ({NAME: {"env": {"A": 1}}}, "env"),
        ({NAME: {"env": {"A": f"{CANARY}\0"}}}, "null character"),
        ({NAME: {"env": {"HOME": CANARY}}}, "names HOME"),
        ({NAME: {"env": {"PATH": CANARY}}}, "sets PATH"),
        ({NAME: {"env_passthrough": "A"}}, "is not a list of strings"),
        ({NAME: {"env_passthrough": ["BRIDGE_ADMIN_TOKEN"]}}, "the bridge's own credentials"),
        ({NAME: {"env_passthrough": ["GITHUB_PRIVATE_KEY"]}}, "the bridge's own credentials"),
        ({NAME: {"clone": CANARY}}, "'full', 'shallow' or 'partial'"),
        ({"folder:/srv/x": {"clone": "shallow"}}, "is a folder"),
    ],
)
def test_what_is_wrong_refuses_to_start_without_a_value(
    tmp_path: Path, entries: Any, words: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        configured(tmp_path, entries)

    said = str(refused.value)
    assert said.startswith("REPOSITORIES_JSON: ")
    assert words in said
    assert CANARY not in said


def test_what_is_no_json_refuses_to_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"REPOSITORIES_JSON: is not valid JSON"):
        load({"PATH": "", "REPOSITORIES_JSON": "{"}, services=registered_services(), home=tmp_path)
