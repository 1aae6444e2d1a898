"""Reads the settings of single repositories: variables, and how much to fetch.

An unknown key is refused, and no error repeats a value: an entry may hold secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError

from app.config.agents import Environment, Variables
from app.config.fields import is_repository, json_object, nothing
from app.config.problems import did_you_mean, first_problem
from app.errors import ConfigurationError

SETTING = "REPOSITORIES_JSON"
Fetch = Literal["full", "shallow", "partial"]


class RepositoryEntry(BaseModel):
    """One repository as it was configured."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)

    env: Environment = Field(default_factory=nothing)
    """Variables that its setup and the agents in it get with these values."""
    env_passthrough: Variables = ()
    """Variables that they get from the settings."""
    clone: Fetch = "full"
    """How much of it the bridge fetches at once."""


KEYS = tuple(RepositoryEntry.model_fields)


def read_repositories(setting: SecretStr | None) -> Mapping[str, RepositoryEntry]:
    """Check what is set for single repositories.

    Raises:
        ConfigurationError: for the first thing that is wrong.
    """
    if setting is None:
        return nothing()
    try:
        entries = json_object(setting.get_secret_value())
    except PydanticCustomError as error:
        words = error.context or {}
    else:
        return MappingProxyType(
            {
                name: _entry(name, raw, number)
                for number, (name, raw) in enumerate(entries.items(), 1)
            }
        )
    raise ConfigurationError(SETTING, words["problem"], words["remedy"])


def _entry(name: str, raw: Any, number: int) -> RepositoryEntry:
    # Do not repeat a malformed name: it may be a value in the wrong place.
    if not is_repository(name):
        raise ConfigurationError(
            SETTING,
            f"the name of repository {number} is not valid",
            "Write owner/name, or the address or folder as in the other settings.",
        )
    if not isinstance(raw, dict):
        raise ConfigurationError(
            SETTING, f"repository {number} is not an object", 'Write "owner/name": {"env": {...}}.'
        )
    unknown = next((key for key in raw if key not in KEYS), None)
    if unknown is not None:
        remedy = did_you_mean(unknown, KEYS, f"The keys are {', '.join(KEYS)}.")
        raise ConfigurationError(SETTING, f"repository {number} has an unknown key", remedy)
    try:
        entry = RepositoryEntry.model_validate(raw)
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    else:
        return _check_fit(entry, name, number)
    key = next((f": {part}" for part in where if part in KEYS), "")
    raise ConfigurationError(SETTING, f"repository {number}{key} {problem}", remedy)


def _check_fit(entry: RepositoryEntry, name: str, number: int) -> RepositoryEntry:
    if "PATH" in {*entry.env, *entry.env_passthrough}:
        raise ConfigurationError(
            SETTING, f"repository {number} sets PATH", "Remove it: agents keep their own PATH."
        )
    if name.startswith("folder:") and entry.clone != "full":
        raise ConfigurationError(
            SETTING, f"repository {number} is a folder, which is not cloned", "Remove clone."
        )
    return entry
