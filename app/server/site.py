"""Holds what the HTTP server of one bridge has besides its runtime, and finds both for routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request
from fastapi.responses import Response

from app.agents.agent import Agent
from app.core.runtime import Runtime
from app.errors import Conflict
from app.metrics import Check, Vital
from app.model.agents import Availability, Choices
from app.server.installations import PendingInstallations
from app.server.login_links import LoginLinks
from app.services.service import Setup


class AgentChanger(Protocol):
    """Changes the registry while the bridge runs; what it refuses, it refuses in words."""

    def show(self, name: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return an agent's entry and the fields of its stored credentials, without secrets."""
        ...

    async def add(
        self,
        name: str,
        entry: Mapping[str, Any],
        credentials: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Agent:
        """Add an agent."""
        ...

    async def isolate(self, name: str) -> Agent:
        """Give an agent that was found on PATH an entry, so that it runs isolated."""
        ...

    async def change(
        self,
        name: str,
        changes: Mapping[str, Any],
        credentials: Mapping[str, Any] | None = None,
    ) -> Agent:
        """Change some keys of an entry, or credentials; tables are merged, None removes a key."""
        ...

    async def connect(
        self, name: str, service: str, credentials: Mapping[str, str]
    ) -> Sequence[str]:
        """Try credentials on a service, then store them; returns what could be better there."""
        ...

    def set_up(self, name: str, service: str) -> Setup:
        """Say how to make an agent's application on a service."""
        ...

    async def rename(self, name: str, to: str) -> Agent:
        """Give an agent another name."""
        ...

    async def choose_default(self, name: str) -> Agent:
        """Let requests without a name go to this agent."""
        ...

    async def acknowledge(self, name: str) -> Agent:
        """Note that a person has seen how an agent's isolation changed."""
        ...

    async def remove(self, name: str) -> None:
        """Remove an agent; its history stays readable."""
        ...

    async def reload(self) -> None:
        """Read the file with the agents of the settings again."""
        ...


async def _find_nothing(_session: int, _address: str) -> None:
    """Have every page built here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What one bridge serves over HTTP, apart from its runtime."""

    links: LoginLinks
    admin_token: str
    installs: PendingInstallations
    ready: Callable[[], Awaitable[Sequence[Check]]]
    """Checks each part of the bridge."""
    vitals: Callable[[], Awaitable[Sequence[Vital]]]
    """Measures how the bridge is now."""
    fetch_page: Callable[[int, str], Awaitable[Response | None]] = _find_nothing
    """Fetches a page about the files of a session from the member that has them."""
    probe: Callable[[str], Awaitable[Availability]]
    """Checks whether an agent can work, by starting it."""
    offers: Callable[[str], Choices] = lambda _agent: Choices()
    """Returns what an agent offered when it was last tried."""
    changes: AgentChanger | None = None

    @property
    def changer(self) -> AgentChanger:
        """What changes agents.

        Raises:
            Conflict: they cannot be changed here.
        """
        if self.changes is None:
            raise Conflict("agents cannot be changed here")
        return self.changes


def runtime_of(request: Request) -> Runtime:
    """Find the runtime of the bridge that serves a request."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def site_of(request: Request) -> Site:
    """Find what the bridge that serves a request has for its HTTP server."""
    site: Site = request.app.state.site
    return site


RuntimeOf = Annotated[Runtime, Depends(runtime_of)]
SiteOf = Annotated[Site, Depends(site_of)]
