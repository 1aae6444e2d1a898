"""GitHub: one App per agent, webhooks in, comments and pull requests out."""

from __future__ import annotations

from app.config import IdForm
from app.model.keys import PlaceKey
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.service import Service, later


def repository(place: PlaceKey) -> str:
    """Name the repository of an issue or a pull request."""
    return place.name.partition(":")[0]


SERVICE = Service(
    name=NAME,
    label="GitHub",
    credentials=GithubCredentials,
    settings=GithubSettings,
    people=IdForm(r"[A-Za-z0-9][A-Za-z0-9-]*", "octocat"),
    # Anyone can take over a login by making an App of that name; a number cannot be taken over.
    bots=IdForm(r"[0-9]+", "41898282"),
    repository=repository,
    build=later(f"{__name__}.adapter:build"),
    checks=later(f"{__name__}.doctor:checks"),
    manifest=later(f"{__name__}.manifest:register"),
    set_up=later(f"{__name__}.manifest:set_up"),
    live=later(f"{__name__}.doctor:live"),
)
