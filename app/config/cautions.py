"""Lists what could be safer in a configuration that is safe enough to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from app.config.configuration import Configuration
from app.config.fields import PAGE
from app.config.ownership import others_can_read


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing that could be safer."""

    subject: str
    """What it is about."""
    problem: str
    """What the risk is."""
    remedy: str
    """What to do about it."""


def cautions(configuration: Configuration) -> Iterator[Caution]:
    """Yield everything that could be safer."""
    beyond = [service for service in configuration.services if service != PAGE]
    if os.geteuid() == 0 and beyond:
        yield Caution(
            "user",
            f"the bridge runs as root, and people on {', '.join(beyond)} give its agents work",
            "Run it as a separate user.",
        )
    files = [configuration.dotenv] if configuration.dotenv is not None else []
    for path in (*files, *configuration.secret_files):
        if others_can_read(path.stat()):
            yield Caution("secrets", f"other users can read {path}", f"chmod 600 {path}")
