"""Joins the parts that erase on demand."""

from __future__ import annotations

from app.agents.isolation import homes_root
from app.children.disk import RESERVE
from app.children.sweep import Sweep
from app.config.bridge_secrets import FILE_NAME as SECRETS
from app.core.erasure.purging import Purging
from app.main.resources import Resources
from app.main.wiring import Joined
from app.store.database import FILE_NAME as DATABASE


def purging_of(base: Resources, joined: Joined) -> Purging:
    """Build what purges texts."""
    data = base.configuration.data_dir
    return Purging(
        base.stores.purges,
        Sweep(data, but=(DATABASE, SECRETS, RESERVE)),
        joined.repository_purge,
        sessions=base.stores.sessions,
        clones=joined.clones,
        session_folders=(data / "workspaces", homes_root(base.configuration)),
        adapters=joined.adapters,
        outbox=joined.outbox,
        vault=base.vault,
        clock=base.clock,
        stop=joined.conversations.end_work,
        compact=base.stores.conversations.compact,
    )
