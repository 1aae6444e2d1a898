"""Joins the parts that erase on demand."""

from __future__ import annotations

from pathlib import Path

from app.agents.isolation import homes_root
from app.children.disk import RESERVE
from app.children.sweep import Sweeps
from app.config.bridge_secrets import FILE_NAME as SECRETS
from app.core.erasure.people import Forgetting
from app.core.erasure.purging import Purging
from app.main.resources import Resources
from app.main.wiring import Joined
from app.model.erasure import Person
from app.store.database import FILE_NAME as DATABASE

_OF_REPOSITORIES = ("workspaces", "mirrors", "gates")
"""Folders that hold what is written in repositories, people's names too."""


def forgetting_of(base: Resources, joined: Joined) -> Forgetting:
    """Build what forgets people."""

    async def remove_said(person: Person) -> None:
        sessions, conversations = sorted(person.sessions), sorted(person.conversations)
        await joined.reach.remove(sessions, conversations, said=True)
        await joined.reach.remove_uploads(person.uploads)

    async def remove_here(person: Person) -> None:
        sessions, conversations = sorted(person.sessions), sorted(person.conversations)
        await joined.reach.remove_here(sessions, conversations, said=True)

    left_out = (DATABASE, SECRETS, RESERVE, *_OF_REPOSITORIES)
    return Forgetting(
        base.stores.people,
        base.stores.purges,
        Sweeps(_folders(base), but=left_out),
        clock=base.clock,
        stop=joined.conversations.end_work,
        remove_said=remove_said,
        remove_here=remove_here,
        own=base.configuration.data_dir,
        compact=base.stores.conversations.compact,
        signals=base.signals,
    )


def purging_of(base: Resources, joined: Joined) -> Purging:
    """Build what purges texts."""
    data = base.configuration.data_dir
    return Purging(
        base.stores.purges,
        Sweeps(_folders(base), but=(DATABASE, SECRETS, RESERVE)),
        joined.repository_purge,
        sessions=base.stores.sessions,
        clones=joined.clones,
        session_folders=(data / "workspaces", homes_root(base.configuration)),
        own=data,
        adapters=joined.adapters,
        outbox=joined.outbox,
        vault=base.vault,
        clock=base.clock,
        stop=joined.conversations.end_work,
        forget_saved=joined.saving.forget_all,
        compact=base.stores.conversations.compact,
        signals=base.signals,
    )


def _folders(base: Resources) -> tuple[Path, ...]:
    return base.configuration.data_dir, base.configuration.shared_dir
