"""What parts of a bridge are built on, in a test."""

from __future__ import annotations

from collections.abc import Mapping

from app.clock import Clock
from app.core.adapters import Adapter
from app.core.base import Base
from app.metrics import Metrics
from app.store.stores import Stores
from app.vault import Vault


def make_base(
    stores: Stores,
    clock: Clock,
    adapters: Mapping[str, Adapter] | None = None,
    vault: Vault | None = None,
) -> Base:
    """Build a base with these stores, and nothing that a test does not need."""
    vault = vault or Vault()
    return Base(clock=clock, vault=vault, stores=stores, metrics=Metrics(), adapters=adapters or {})
