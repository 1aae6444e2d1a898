"""Declares the parts of a bridge that the API and the page use; `main` passes them in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.intake.dispatch import Dispatcher
from app.core.intake.reader import Intake
from app.core.ports import Clock
from app.core.repo_provider import RepoProvider
from app.core.repositories.picker import RepositoryPicker
from app.core.repositories.progress import WorkProgress
from app.core.session_manager import SessionManager
from app.core.stores.inbox import DeliveryStore
from app.core.stores.sessions import PostStore, SessionStore, TranscriptStore, TurnStore
from app.server.installations import Installations
from app.server.login_links import LoginLinks
from app.server.metrics import Metrics


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What the API shows of an agent."""

    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    """How it is isolated, in the words of the start-up probe."""
    checkout: str = ""
    """What settings in a checkout can do to it."""
    limits: str = ""
    """How much of the machine one of its sessions may use."""
    emoji: str = ""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    services: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Example messages for a new user."""


@dataclass(frozen=True, slots=True)
class MissingAgent:
    """A known agent that is not on this machine."""

    title: str
    install: str
    """The command that installs it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One readiness check."""

    name: str
    ok: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a bridge that people reach over HTTP."""

    agents: Mapping[str, AgentCard]
    intake: Intake
    dispatcher: Dispatcher
    manager: SessionManager
    ledger: Ledger
    feed: Feed
    sessions: SessionStore
    turns: TurnStore
    transcript: TranscriptStore
    deliveries: DeliveryStore
    posts: PostStore
    clock: Clock
    metrics: Metrics
    door: LoginLinks
    uploads: Path
    """The folder of attachments."""
    admin_token: str
    ready: Callable[[], Awaitable[Sequence[Check]]]
    installs: Installations
    picker: RepositoryPicker
    missing: Sequence[MissingAgent] = ()
    workspaces: RepoProvider | None = None
    progress: WorkProgress | None = None
    troubles: Callable[[], Mapping[str, str]] = dict
    """Returns the problem of each listening adapter; empty text if it has none."""


def parts_of(request: Request) -> Parts:
    """Find the parts of the bridge that serves a request."""
    parts: Parts = request.app.state.parts
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]
