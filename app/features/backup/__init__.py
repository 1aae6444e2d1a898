"""Backs up everything that a bridge keeps, and restores it; from the command line alone."""

from __future__ import annotations

from app.features.feature import Feature

FEATURE = Feature(
    name="backup",
    package=__name__,
    commands={
        "backup": "Back up everything, while the bridge runs.",
        "restore": "Restore a backup on an empty machine.",
    },
)
