"""The value that plugs a service into the bridge, and the findings that its checks give.

Importing a service's package must be fast: heavy modules are imported by the functions given here,
when they are called.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.config import AgentConfig, Configuration, KnownService
from app.config.fields import is_loopback
from app.config.network import HostPattern
from app.errors import ConfigurationError
from app.model.keys import AreaOf, PlaceKey, no_area

if TYPE_CHECKING:
    from app.clock import Clock
    from app.core.adapters import Adapter
    from app.core.repositories.forge import Forge
    from app.services.common.live import LiveStep, Undo
    from app.store.stores import Stores
    from app.vault import Vault


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    verdict: Severity
    what: str
    reason: str
    remedy: str = ""


def ok(what: str, reason: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(Severity.OK, what, reason)


def warning(what: str, reason: str, remedy: str) -> Finding:
    """Say that something could be better."""
    return Finding(Severity.WARNING, what, reason, remedy)


def problem(what: str, reason: str, remedy: str) -> Finding:
    """Say that something will not work."""
    return Finding(Severity.PROBLEM, what, reason, remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """What a service builds its adapters from."""

    configuration: Configuration
    secret_key: SecretStr
    """The bridge's own key, to sign and to seal with."""
    vault: Vault
    clock: Clock
    stores: Stores
    pictures: Mapping[str, Sequence[HostPattern]] = field(default_factory=dict)
    """The hosts on each agent's list: pictures in what it says may be there."""
    removed: Collection[str] = ()
    """The ids of agents that were removed: people may still mention them."""

    def absent(self, present: Collection[str]) -> list[str]:
        """List the agents that are not on a service, or not any more."""
        every = (*self.removed, *self.configuration.agents)
        return [agent for agent in every if agent not in present]

    @property
    def uploads(self) -> Path:
        """The folder for files that people attach."""
        return self.configuration.shared_dir / "uploads"


@dataclass(frozen=True, slots=True)
class Presence:
    """The adapters of a service, and its forge if it hosts repositories."""

    adapters: Sequence[Adapter]
    forge: Forge | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What a service's checks look at."""

    configuration: Configuration
    vault: Vault
    reading: Callable[[], AbstractContextManager[Stores | None]]
    """Opens the store for reading, None if there is none yet; may raise StoreUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRequest:
    """The agent to add to a service, and where to print the instructions."""

    configuration: Configuration
    agent: AgentConfig
    title: str
    """The agent's display name."""
    organization: str | None
    """The organisation that owns the application, where applications have owners."""
    workflows: bool
    """Whether the agent may change workflow files, where that takes a permission."""
    port: int | None
    """The local port for a browser to come back to, where that is needed; None takes any."""
    write: Callable[[str], None]
    """Writes to stdout."""
    explain: Callable[[str], None]
    """Writes to stderr."""
    keeping: Callable[[], Callable[[Mapping[str, str]], None]] | None = None
    """Returns what gives a stored agent its credentials, by field; raises if no bridge runs."""

    @property
    def is_stored(self) -> bool:
        """Whether the agent's credentials are stored with it, and not put into the settings."""
        return self.agent.source == "stored"

    def called(self, setting: str) -> str:
        """Return what a credential is called where it is put, by the plain name of its setting."""
        if not self.is_stored:
            return self.agent.setting(setting)
        service, _, field = setting.lower().partition("_")
        return f"credentials.{service}.{field}"


@dataclass(frozen=True, slots=True)
class Setup:
    """How a person makes an agent's application on a service, in a browser."""

    address: str
    """Opens the service's form, filled in."""
    steps: tuple[str, ...]
    """What to do there, and where the credentials are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRequest:
    """The place to try things in, and the agent that does it."""

    context: CheckContext
    agent: str
    place: str
    """A place that the operator names: nothing is written anywhere else."""
    clock: Clock
    undo: Undo
    """Removes what the steps made."""
    progress: Callable[[str], None]
    """Shows how far a step is."""


def later(reference: str) -> Callable[..., Any]:
    """Return a function, given as `module:name`, whose module is imported when it is called."""
    module, _, name = reference.partition(":")

    def call(*given: Any) -> Any:
        return getattr(import_module(module), name)(*given)

    return call


def no_repository(_place: PlaceKey) -> None:
    """Leave the repository of a place to the settings and to people."""


async def no_checks(_context: CheckContext) -> AsyncIterator[Finding]:
    """Find nothing."""
    return
    yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(KnownService):
    """One service, as the settings, `doctor`, `manifest` and the bridge use it."""

    build: Callable[[BuildContext], Presence]
    """Builds the adapters of all agents that have credentials."""
    area: AreaOf = no_area
    """Returns the area of a place, such as the channel of a thread."""
    repository: Callable[[PlaceKey], str | None] = no_repository
    """Returns the repository that a place belongs to; None if people choose it."""
    checks: Callable[[CheckContext], AsyncIterator[Finding]] = no_checks
    """Checks credentials, permissions and reachability for `doctor`."""
    manifest: Callable[[ManifestRequest], None] | None = None
    """Tells an operator how to add an agent to the service, or does it."""
    set_up: Callable[[Configuration, AgentConfig, str], Setup] | None = None
    """Says how to make an agent's application, from its entry and its display name."""
    live: Callable[[LiveRequest], AbstractAsyncContextManager[Sequence[LiveStep]]] | None = None
    """Tries on the real platform what the service assumes about it, for `doctor --live`."""


SETTING: Final = "BRIDGE_BASE_URL"
REMEDY: Final = f"Set {SETTING} to the public https address of this bridge; a tunnel works too."


def is_public(base_url: str) -> bool:
    """Tell whether a platform can reach an address: https, and not this machine only."""
    parts = urlsplit(base_url)
    return parts.scheme == "https" and not is_loopback(parts.hostname or "")


def require_public(base_url: str, platform: str) -> None:
    """Refuse an address that a platform cannot send webhooks to.

    Raises:
        ConfigurationError: it is on this machine only, or not https.
    """
    if not is_public(base_url):
        raise ConfigurationError(SETTING, f"{platform} cannot reach {base_url}", REMEDY)
