"""What the settings mean for the parts: terms of agents, limits, who may, where agents work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal
from urllib.parse import quote, urlsplit

from app.config import (
    Configuration,
)
from app.config.fields import is_loopback
from app.core.consent.policy import PRESETS, Policy, Rule
from app.core.consent.terms import Terms
from app.core.intake.access import Access
from app.core.keys import PlaceKey
from app.core.repositories.directory import Directory, SetFor, Target
from app.core.workspaces import Author
from app.services.web.views import path_of


def directory_of(configuration: Configuration) -> Directory:
    """Say which repository each place has."""
    return Directory(
        git_url=configuration.github_git_url,
        home=configuration.home,
        data_dir=configuration.data_dir,
        default=configuration.github_repo,
        areas={
            PlaceKey(service, name): repository
            for service, named in (
                ("slack", configuration.slack_channel_repos),
                ("linear", configuration.linear_team_repos),
            )
            for name, repository in named.items()
        },
    )


def variables_of(
    configuration: Configuration, directory: Directory, now: Callable[[str, str], str]
) -> Mapping[Target, Mapping[str, str]]:
    """Say which variables whoever works in a repository or a folder gets beside their own."""
    entries = {
        directory.read(name): {
            variable: value.get_secret_value() for variable, value in terms.variables.items()
        }
        for name, terms in configuration.repositories.items()
    }
    return SetFor(entries, directory, now)


def fetched_as(
    how: Literal["shallow", "partial"],
    configuration: Configuration,
    directory: Directory,
    now: Callable[[str, str], str],
) -> Collection[Target]:
    """Say of which repositories less than everything is fetched at once."""
    entries = {
        directory.read(name): terms.clone
        for name, terms in configuration.repositories.items()
        if terms.clone == how
    }
    return SetFor(entries, directory, now)


def authors_of(configuration: Configuration) -> dict[str, Author]:
    """Name the author of each agent's commits where no platform gives it an identity."""
    return {
        name: Author(entry.display_name or name, f"{name}@noreply.agent-bridge.invalid")
        for name, entry in configuration.agents.items()
    }


def idle_seconds(configuration: Configuration) -> dict[str, float]:
    """Say how long each agent may idle before it is parked."""
    usual = configuration.limits.idle_minutes
    return {
        name: 60.0 * (usual if entry.idle_minutes is None else entry.idle_minutes)
        for name, entry in configuration.agents.items()
    }


def own_limits(
    configuration: Configuration, name: Literal["max_processes", "max_turns"]
) -> dict[str, int]:
    """List the agents that have a limit of their own."""
    return {
        agent: limit
        for agent, entry in configuration.agents.items()
        if (limit := getattr(entry.limits, name)) is not None
    }


def terms_of(configuration: Configuration, agent: str) -> Terms:
    """Say on which terms an agent works: its own, else those of the whole bridge."""
    entry, everybody = configuration.agents[agent], configuration.limits
    own = entry.limits
    permissions = entry.permissions
    return Terms(
        policy=PRESETS[permissions]
        if isinstance(permissions, str)
        else Policy(
            tuple(
                Rule(rule.decision, rule.kind, rule.title, rule.path, rule.command)
                for rule in permissions
            )
        ),
        turn_seconds=60.0 * (own.turn_minutes or everybody.turn_minutes),
        idle_seconds=idle_seconds(configuration)[agent],
        ask_seconds=3600.0 * (own.ask_hours or everybody.ask_hours),
        budget_usd=own.budget_usd or everybody.budget_usd,
        resume=own.resume,
    )


def access_of(configuration: Configuration) -> Access:
    """Say whom the operator lets in or keeps out."""
    return Access(
        users=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_users),
        only_users=configuration.allowed_users_only,
        bots=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_bots),
    )


def page_of(configuration: Configuration) -> Callable[[PlaceKey], str]:
    """Say where people find the page of a place; nowhere, if only this machine could open it."""
    base = configuration.base_url
    if is_loopback(urlsplit(base).hostname or ""):
        return lambda _place: ""
    return lambda place: f"{base}{path_of(place)}"


def file_link_of(configuration: Configuration) -> Callable[[str], str]:
    """Say where people get a file that is kept; nowhere, if only this machine could open it."""
    base = configuration.base_url
    if is_loopback(urlsplit(base).hostname or ""):
        return lambda _url: ""
    return lambda url: f"{base}/uploads/{quote(url)}"


def place_prompts(configuration: Configuration) -> Callable[[PlaceKey], str]:
    """Say what the operator adds in each place."""

    def added(place: PlaceKey) -> str:
        channel = place.name.partition(":")[0] if place.service == "slack" else ""
        return configuration.slack_channel_prompts.get(channel, "")

    return added


def hosts_of(configuration: Configuration) -> set[str]:
    """List the Host headers that mean this bridge."""
    port = configuration.port
    own = {"127.0.0.1", "localhost", "[::1]", configuration.host}
    return {f"{host}:{port}" for host in own} | {urlsplit(configuration.base_url).netloc}
