"""Linear: one agent session per issue or mention."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from app.config import AgentConfig, Configuration, IdForm
from app.model.keys import PlaceKey
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
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


def area(place: PlaceKey) -> PlaceKey | None:
    """Return the team of an issue; a place without an issue is named by a UUID."""
    team, _, number = place.name.partition("-")
    return PlaceKey(NAME, team) if number.isdecimal() else None


def build(context: BuildContext) -> Presence:
    """Build the adapter of every agent that has credentials."""
    from app.services.linear.adapter import build as run  # noqa: PLC0415 - httpx and ciphers, 0.1 s

    return Presence(run(context))


def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has credentials."""
    from app.services.linear.doctor import checks as run  # noqa: PLC0415 - 0.1 s

    return run(context)


def manifest(request: ManifestRequest) -> None:
    """Print how to create an agent's application in Linear."""
    from app.services.linear.manifest import show  # noqa: PLC0415 - httpx, 0.1 s

    show(request)


def set_up(configuration: Configuration, agent: AgentConfig, title: str) -> Setup:
    """Say how to make an agent's application in Linear."""
    from app.services.linear.manifest import set_up as run  # noqa: PLC0415 - only this needs it

    return run(configuration, agent, title)


def live(request: LiveRequest) -> AbstractAsyncContextManager[Sequence[LiveStep]]:
    """Try on Linear what the bridge assumes about it."""
    from app.services.linear.doctor import live as run  # noqa: PLC0415 - 0.1 s

    return run(request)


SERVICE = Service(
    name=NAME,
    label="Linear",
    credentials=LinearCredentials,
    settings=LinearSettings,
    people=IdForm(r"[A-Za-z0-9-]+", "<user id>"),
    bots=IdForm(r"[A-Za-z0-9-]+", "<app user id>"),
    area=area,
    build=build,
    checks=checks,
    manifest=manifest,
    set_up=set_up,
    live=live,
)
