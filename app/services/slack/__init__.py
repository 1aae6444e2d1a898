"""Slack: one app per agent, over Socket Mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from app.config import AgentConfig, Configuration, IdForm
from app.model.keys import PlaceKey
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
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings

if TYPE_CHECKING:  # half of the core, which many commands do not need
    from app.services.common.live import LiveStep


def area(place: PlaceKey) -> PlaceKey | None:
    """Return the channel of a thread."""
    channel, _, thread = place.name.partition(":")
    return PlaceKey(NAME, channel) if thread else None


def build(context: BuildContext) -> Presence:
    """Build the adapter of every agent that has an app."""
    from app.services.slack.adapter import build as run  # noqa: PLC0415 - slack-sdk and aiohttp, 1 s

    return Presence(run(context))


def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check the app of every agent that has one."""
    from app.services.slack.doctor import checks as run  # noqa: PLC0415 - 1.2 s

    return run(context)


def manifest(request: ManifestRequest) -> None:
    """Print the manifest of an agent's app on stdout, and the steps on stderr."""
    from app.services.slack.manifest import show  # noqa: PLC0415 - only this needs it

    show(request)


def set_up(configuration: Configuration, agent: AgentConfig, title: str) -> Setup:
    """Say how to make an agent's app in Slack."""
    from app.services.slack.manifest import set_up as run  # noqa: PLC0415 - only this needs it

    return run(configuration, agent, title)


def live(request: LiveRequest) -> AbstractAsyncContextManager[Sequence[LiveStep]]:
    """Try on Slack what the bridge assumes about it."""
    from app.services.slack.doctor import live as run  # noqa: PLC0415 - 1.2 s

    return run(request)


SERVICE = Service(
    name=NAME,
    label="Slack",
    credentials=SlackCredentials,
    settings=SlackSettings,
    people=IdForm(r"[UW][A-Z0-9]+", "U024BE7LH"),
    bots=IdForm(r"[UBA][A-Z0-9]+", "B024BE7LH"),
    area=area,
    build=build,
    checks=checks,
    manifest=manifest,
    set_up=set_up,
    live=live,
)
