"""Lists what could be better in a configuration that is good enough to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from app.config.configuration import Configuration
from app.config.fields import PAGE
from app.config.ownership import others_can_read
from app.config.roster import DEMO_COMMAND


@dataclass(frozen=True, slots=True)
class Caution:
    """One thing that could be better."""

    subject: str
    """What it is about."""
    problem: str
    """What is missing, or what the risk is."""
    remedy: str
    """What to do about it."""


def cautions(configuration: Configuration) -> Iterator[Caution]:
    """Yield everything that could be better."""
    if unserved := describe_unserved(configuration):
        yield unserved
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


def describe_unserved(configuration: Configuration) -> Caution | None:
    """Say which services wait for an agent; None if none does."""
    if not configuration.unserved:
        return None
    return Caution(
        ", ".join(configuration.unserved),
        "not served, because no agent is set and the demo agent is on the page only",
        "Set AGENTS_JSON, or ACP_AGENT_COMMAND to an agent's command, and restart the bridge. "
        f"ACP_AGENT_COMMAND={DEMO_COMMAND} puts the demo agent there.",
    )
