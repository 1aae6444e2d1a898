"""GitHub: one App per agent, webhooks in, comments and pull requests out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from app.config import AgentConfig, Configuration, IdForm
from app.model.keys import PlaceKey
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.service import (
    BuildContext,
    CheckContext,
    Finding,
    LiveRequest,
    ManifestRequest,
    Presence,
    Service,
    Setup,
)

if TYPE_CHECKING:  # half of the core, which many commands do not need
    from app.services.common.live import LiveStep


def repository(place: PlaceKey) -> str:
    """Name the repository of an issue or a pull request."""
    return place.name.partition(":")[0]


def build(context: BuildContext) -> Presence:
    """Make the presence of every agent that has an App, and the forge."""
    from app.services.github.adapter import build as run  # noqa: PLC0415 - 0.3 s

    return run(context)


def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has an App."""
    from app.services.github.doctor import checks as run  # noqa: PLC0415 - 0.3 s

    return run(context)


def manifest(request: ManifestRequest) -> None:
    """Register an agent's App with one click, and keep its credentials."""
    from app.services.github.manifest import register  # noqa: PLC0415 - httpx, 0.1 s

    register(request)


def set_up(configuration: Configuration, agent: AgentConfig, title: str) -> Setup:
    """Say how to make an agent's App on GitHub."""
    from app.services.github.manifest import set_up as run  # noqa: PLC0415 - httpx, 0.1 s

    return run(configuration, agent, title)


def live(request: LiveRequest) -> AbstractAsyncContextManager[Sequence[LiveStep]]:
    """Try on GitHub what the bridge assumes about it."""
    from app.services.github.doctor import live as run  # noqa: PLC0415 - httpx and ciphers, 0.3 s

    return run(request)


SERVICE = Service(
    name=NAME,
    label="GitHub",
    credentials=GithubCredentials,
    settings=GithubSettings,
    people=IdForm(r"[A-Za-z0-9][A-Za-z0-9-]*", "octocat"),
    # Anyone can take over a login by making an App of that name; a number cannot be taken over.
    bots=IdForm(r"[0-9]+", "41898282"),
    repository=repository,
    build=build,
    checks=checks,
    manifest=manifest,
    set_up=set_up,
    live=live,
)
