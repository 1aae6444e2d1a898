"""What the checks of services look at, as `doctor` hands it to them."""

from __future__ import annotations

from app.config import Configuration
from app.services.service import CheckContext
from app.terminal.stored import make_context
from app.vault import Vault


def check_context(configuration: Configuration, vault: Vault | None = None) -> CheckContext:
    """Let checks look at a configuration and its store."""
    return make_context(configuration, vault or Vault())
