"""Joins the parts that erase on demand."""

from __future__ import annotations

from app.agents.isolation import homes_root, workspaces_root
from app.children.disk import RESERVE
from app.children.kept_files import KeptFiles
from app.config.process import SECRETS
from app.core.erasure.disk import KeptFolders
from app.core.erasure.people import Forgetting
from app.core.erasure.purging import Purging
from app.core.runtime import Runtime
from app.main.resources import Resources
from app.main.wiring import Joined
from app.model.erasure import Person
from app.store.database import FILE_NAME as DATABASE

_OF_REPOSITORIES = ("workspaces", "mirrors", "gates")
"""Folders that hold what is written in repositories, people's names too."""


def forgetting_of(base: Resources, joined: Joined, runtime: Runtime) -> Forgetting:
    """Build what forgets people."""

    async def remove_said(person: Person) -> None:
        sessions, conversations = sorted(person.sessions), sorted(person.conversations)
        await joined.reach.remove(sessions, conversations, said=True)
        await joined.reach.remove_uploads(person.uploads)

    async def remove_here(person: Person) -> None:
        sessions, conversations = sorted(person.sessions), sorted(person.conversations)
        await joined.reach.remove_here(sessions, conversations, said=True)

    return Forgetting(
        base.stores.people,
        base.stores.purges,
        _files(base, *_OF_REPOSITORIES),
        clock=base.clock,
        stop=runtime.end_work,
        remove_said=remove_said,
        remove_here=remove_here,
        own=base.configuration.data_dir,
        compact=base.database.compact,
        signals=base.signals,
    )


def purging_of(base: Resources, joined: Joined, runtime: Runtime) -> Purging:
    """Build what purges texts."""
    data, shared = base.configuration.data_dir, base.configuration.shared_dir
    return Purging(
        base.stores.purges,
        _files(base),
        joined.repository_search,
        sessions=base.stores.sessions,
        clones=joined.clones,
        folders=KeptFolders(
            workspaces=workspaces_root(base.configuration),
            gates=data / "gates",
            homes=homes_root(base.configuration),
            mirrors=shared / "mirrors",
            saved=shared / "kept",
        ),
        own=data,
        adapters=joined.adapters,
        outbox=joined.outbox,
        vault=base.vault,
        clock=base.clock,
        stop=runtime.end_work,
        compact=base.database.compact,
        signals=base.signals,
    )


def _files(base: Resources, *also: str) -> KeptFiles:
    """Look into all files but some, and others that are named."""
    configuration, left_out = base.configuration, (DATABASE, SECRETS, RESERVE, *also)
    return KeptFiles(configuration.data_dir, configuration.shared_dir, but=left_out)
