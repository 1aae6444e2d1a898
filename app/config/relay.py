"""Reads the environment of `agent-bridge relay`: its token, and what its agent gets.

The agent runs as the user who started the relay and gets that user's environment, but never the
token.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from app.config.sources import FILE, Sources
from app.errors import ConfigurationError

TOKEN: Final = "RELAY_TOKEN"  # noqa: S105 - a name
_SHORTEST: Final = 16
"""Characters: what fits a random token and no password that people make up."""


@dataclass(frozen=True, slots=True)
class RelayEnvironment:
    """What a relay is started with."""

    token: SecretStr
    child: dict[str, str]
    """The environment of its agents."""
    folder: Path
    """Where they work."""


def read_relay_environment() -> RelayEnvironment:
    """Read the environment of this process.

    Raises:
        ConfigurationError: there is no token, or one that could be guessed.
    """
    token = Sources.read(os.environ, None).secret(TOKEN)
    if token is None or len(token) < _SHORTEST:
        problem = "is not set" if token is None else f"has fewer than {_SHORTEST} characters"
        raise ConfigurationError(
            TOKEN,
            problem,
            f"Set it, or {TOKEN}{FILE}, to a random string such as `openssl rand -hex 32` prints, "
            "and give the bridge the same one.",
        )
    own = {TOKEN, f"{TOKEN}{FILE}"}
    child = {name: value for name, value in os.environ.items() if name not in own}
    return RelayEnvironment(SecretStr(token), child, Path.cwd())
