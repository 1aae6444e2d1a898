"""From an event of GitHub to the repository it is about: by its number, with its name; pure."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, ValidationError

from app.core.inbound import Naming
from app.services.github.names import SERVICE
from app.services.github.payloads import Changes, Repository

RENAMES: dict[str, tuple[str, ...]] = {"repository": ("renamed", "transferred")}
"""The events that say that a repository got another name; any other may show it too."""

NameOf = Callable[[Repository], str]


def as_given(repository: Repository) -> str:
    """Call a repository what an event calls it."""
    return repository.full_name


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    action: str = ""
    repository: Repository | None = None
    changes: Changes | None = None


def read(event: str, body: bytes, host: str) -> Naming | None:
    """Tell which repository an event is about; None if it is about none or makes no sense."""
    try:
        given = _Event.model_validate_json(body)
    except ValidationError:
        return None
    where = given.repository
    if where is None:
        return None
    is_renaming = given.action in RENAMES.get(event, ())
    before = _before(where, given.changes) if is_renaming and given.changes is not None else ""
    return Naming(SERVICE, host, where.id, where.full_name, before)


def _before(where: Repository, changes: Changes) -> str:
    """Tell what a repository was called before it got another name or another owner."""
    owner, _, name = where.full_name.partition("/")
    if changes.repository is not None and changes.repository.name.text:
        name = changes.repository.name.text
    if changes.owner is not None:
        was = changes.owner.owner.organization or changes.owner.owner.user
        owner = was.login if was is not None else owner
    return f"{owner}/{name}"
