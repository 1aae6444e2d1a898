"""Registers features: the built-in ones, one folder each, and those that other packages add.

A package adds one with an entry point in the group `agent_bridge.features` for its `Feature`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

from app.errors import ConfigurationError
from app.features.feature import GROUP, Feature

BUILT_IN = (
    "agents",
    "doctor",
    "pause",
    "background",
    "conversations",
    "personas",
    "memory",
    "delegation",
    "together",
    "schedules",
    "grants",
    "reminders",
    "outcomes",
    "record",
    "spending",
    "erasing",
    "backup",
    "missed",
)
"""In the order in which they start; each is optional."""


@cache
def registered_features() -> tuple[Feature, ...]:
    """List every feature: the built-in ones first, then those of other packages by name.

    Raises:
        ConfigurationError: a package adds one that cannot be used.
    """
    own = [name for name in BUILT_IN if find_spec(f"{__name__}.{name}") is not None]
    features: dict[str, Feature] = {
        name: import_module(f"{__name__}.{name}").FEATURE for name in own
    }
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            feature = point.load()
        except Exception as error:
            raise _unusable(point.value, f"{type(error).__name__}: {error}") from error
        if not isinstance(feature, Feature):
            raise _unusable(point.value, "it is not a Feature")
        if feature.name in features:
            raise _unusable(point.value, f"the name {feature.name!r} is taken")
        features[feature.name] = feature
    return tuple(each for each in features.values() if features.keys() >= set(each.needs))


def _unusable(value: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        GROUP, f"{value} cannot be used: {why}", "Update or uninstall that package."
    )
