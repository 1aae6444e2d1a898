"""Registers services: the built-in ones, one folder each, and those that other packages add.

A package adds one with an entry point in the group `agent_bridge.services` for its `Service`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.model.keys import PlaceKey

if TYPE_CHECKING:
    from app.services.service import Service

PAGE = "web"
BUILT_IN = ("slack", "github", "linear")
GROUP = "agent_bridge.services"
_NAME = re.compile(r"[a-z][a-z0-9]*")
_TAKEN = frozenset({PAGE, "agents", "bridge"})
"""Names that mean something else in keys and settings."""


@cache
def registered_services() -> tuple[Service, ...]:
    """List every service: the built-in ones first, then those of other packages by name.

    Raises:
        ConfigurationError: a package adds one that cannot be used.
    """
    own = [name for name in BUILT_IN if find_spec(f"{__name__}.{name}") is not None]
    services = {name: import_module(f"{__name__}.{name}").SERVICE for name in own}
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        service = _load(point)
        if service.name in services or service.name in _TAKEN:
            raise _unusable(point, f"the name {service.name!r} is taken", "Uninstall one of them.")
        services[service.name] = service
    return tuple(services.values())


def added_by_packages(group: str = GROUP) -> list[tuple[str, str]]:
    """List what other packages add to a group: each name, and the package with its version."""
    points = sorted(entry_points(group=group), key=lambda each: each.name)
    return [
        (each.name, f"{each.dist.name} {each.dist.version}" if each.dist else each.value)
        for each in points
    ]


def find_area(place: PlaceKey) -> PlaceKey | None:
    """Return the area of a place, such as the channel of a thread; None if it has none."""
    service = _by_name().get(place.service)
    return service.area(place) if service is not None else None


def find_repository(place: PlaceKey) -> str | None:
    """Return the repository that a place belongs to; None if people choose it."""
    service = _by_name().get(place.service)
    return service.repository(place) if service is not None else None


def label_of(name: str) -> str:
    """Return the display name of a service; empty for the page itself."""
    if name == PAGE:
        return ""
    service = _by_name().get(name)
    return service.label if service is not None else name


@cache
def _by_name() -> dict[str, Service]:
    return {service.name: service for service in registered_services()}


def _load(point: EntryPoint) -> Service:
    from app.services.service import Service  # noqa: PLC0415 - 0.3 s that help does not need

    try:
        service = point.load()
    except Exception as error:  # third-party code may raise anything
        words = f"it cannot be imported ({type(error).__name__}: {error})"
        raise _unusable(point, words, "Update or uninstall it.") from error
    if not isinstance(service, Service) or not _NAME.fullmatch(service.name):
        raise _unusable(point, "its entry point is not a Service", "Update or uninstall it.")
    return service


def _unusable(point: EntryPoint, problem: str, remedy: str) -> ConfigurationError:
    package = point.dist.name if point.dist is not None else point.module
    return ConfigurationError(f"the package {package}", problem, remedy)
