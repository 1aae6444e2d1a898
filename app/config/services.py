"""Describes a service to the settings: its credentials, its own settings, its ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, SecretStr


class IdForm(NamedTuple):
    """The form of an account's id on a service."""

    pattern: str
    """The pattern of the whole id."""
    example: str
    """An example, as a person would write it."""


class ServiceModel(BaseModel):
    """Settings whose names begin with the name of a service."""

    service: ClassVar[str]

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the plain name of the setting for each field."""
        return {field: f"{cls.service}_{field}".upper() for field in cls.model_fields}

    @classmethod
    def secret_names(cls) -> frozenset[str]:
        """Return the plain names of those settings that are secret."""
        names = cls.names()
        return frozenset(
            names[field]
            for field, about in cls.model_fields.items()
            if "SecretStr" in str(about.annotation)
        )

    def secrets(self) -> Iterator[SecretStr]:
        """Yield the secret values."""
        return (value for _, value in self if isinstance(value, SecretStr))


class ServiceSettings(ServiceModel):
    """The settings of a service as a whole, for all agents."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, str_strip_whitespace=True
    )

    repositories_by_area: ClassVar[str | None] = None
    """The field with the repository of each area, if there is one."""
    prompts_by_area: ClassVar[str | None] = None
    """The field with the additional prompt of each area, if there is one."""

    def area_repositories(self) -> Mapping[str, str]:
        """Return the repository of each area, by the area's name."""
        return getattr(self, self.repositories_by_area) if self.repositories_by_area else {}

    def area_prompts(self) -> Mapping[str, str]:
        """Return the additional prompt of each area, by the area's name."""
        return getattr(self, self.prompts_by_area) if self.prompts_by_area else {}


class ServiceCredentials(ServiceModel):
    """What one agent needs to be present on one service."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    identity: ClassVar[tuple[str, ...]]
    """What no two agents may share."""
    hook_secrets: ClassVar[tuple[str, ...]] = ()
    """What deliveries may be signed with."""

    @classmethod
    def missing(cls, given: Mapping[str, str]) -> str | None:
        """Return a required field that was not given, or None."""
        needed = (field for field, about in cls.model_fields.items() if about.is_required())
        return next((field for field in needed if field not in given), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownService:
    """What the settings need to know about a service."""

    name: str
    """Its name in settings, keys and webhook paths: lowercase letters and digits."""
    label: str
    """The name people see."""
    credentials: type[ServiceCredentials]
    """What an agent needs to be present there."""
    settings: type[ServiceSettings]
    """The settings for all agents there."""
    people: IdForm | None = None
    """How ALLOWED_USERS names a person; None if it cannot."""
    bots: IdForm | None = None
    """How ALLOWED_BOTS names a bot; None if it cannot."""
