"""Who is present where: the adapters of every agent on every service that has credentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from app.config import (
    Configuration,
    GithubCredentials,
    LinearCredentials,
    SlackCredentials,
)
from app.core.adapters import Adapter
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.main.foundation import Foundation
from app.services.web.adapter import WebAdapter

if TYPE_CHECKING:
    from app.services.github.forge import GithubForge


@dataclass(frozen=True, slots=True)
class Platforms:
    """Where agents are present, and what GitHub is for repositories."""

    adapters: tuple[Adapter, ...]
    forge: GithubForge | None = None


def platforms(base: Foundation) -> Platforms:
    """Make the adapters of all agents on the services that run."""
    on_github, forge = _github(base)
    on_web = map(WebAdapter, base.configuration.agents)
    return Platforms((*on_web, *_slack(base), *on_github, *_linear(base)), forge)


def _slack(base: Foundation) -> Sequence[Adapter]:
    """Make the presence on Slack of every agent that has an app there."""
    configuration = base.configuration
    owners = {
        name: credentials
        for (_, name), credentials in configuration.credentials.items()
        if isinstance(credentials, SlackCredentials)
    }
    if not owners:
        return []
    # Only then: slack-sdk and aiohttp take a second to import.
    from app.services.slack.adapter import SlackAdapter, SlackApp  # noqa: PLC0415
    from app.services.slack.auth import Colleagues, Seal  # noqa: PLC0415

    colleagues = Colleagues(expected=len(owners))
    seal = Seal(base.secrets.secret_key.get_secret_value())
    bots = frozenset(who.id for who in configuration.allowed_bots if who.service == "slack")

    def adapter(name: str, credentials: SlackCredentials) -> SlackAdapter:
        entry = configuration.agents[name]
        return SlackAdapter(
            SlackApp(
                agent=name,
                bot_token=credentials.bot_token.get_secret_value(),
                app_token=credentials.app_token.get_secret_value(),
                suffix="" if entry.default else f"__{entry.suffix}",
                base_url=configuration.slack_api_url,
                bots=bots,
            ),
            colleagues=colleagues,
            seal=seal,
            active=lambda since: base.stores.sessions.active("slack", name, since=since),
            uploads=configuration.data_dir / "uploads",
            clock=base.clock,
        )

    return [adapter(name, credentials) for name, credentials in owners.items()]


def _github(base: Foundation) -> tuple[Sequence[Adapter], GithubForge | None]:
    """Make the adapters of all agents that have a GitHub App."""
    configuration, clock = base.configuration, base.clock
    owned = {
        agent: credentials
        for (_, agent), credentials in configuration.credentials.items()
        if isinstance(credentials, GithubCredentials)
    }
    if not owned:
        return (), None
    # 0.3 s that only those pay who are on GitHub.
    from app.services.github.adapter import App, GithubAdapter  # noqa: PLC0415
    from app.services.github.api import GithubApi  # noqa: PLC0415
    from app.services.github.auth import AppAuth  # noqa: PLC0415
    from app.services.github.catalog import Catalog  # noqa: PLC0415
    from app.services.github.directory import Directory  # noqa: PLC0415
    from app.services.github.forge import GithubForge  # noqa: PLC0415
    from app.services.github.mentions import BOT, Identity  # noqa: PLC0415
    from app.services.github.repositories import GithubRepositories  # noqa: PLC0415
    from app.services.github.webhook import Hook  # noqa: PLC0415

    directory, host = Directory(owned), urlsplit(configuration.github_git_url).netloc

    def link_of(key: SessionKey) -> str:
        session = base.stores.sessions.find(key)
        found = base.stores.proposals.latest(session.id) if session is not None else None
        return found.link if found is not None and not found.outcome else ""

    made: list[Adapter] = []
    repositories: dict[str, GithubRepositories] = {}
    catalogs: dict[str, Catalog] = {}
    for agent, given in owned.items():
        auth = AppAuth(
            given.app_id,
            given.private_key,
            clock,
            keep_secret=base.vault.register,
            installation=given.installation_id,
        )
        secrets = filter(None, (given.webhook_secret, given.webhook_secret_before))
        app = App(
            hook=Hook(
                adapter=adapter_name("github", agent),
                app_id=given.app_id,
                secrets=tuple(secret.get_secret_value().encode() for secret in secrets),
            ),
            paths=_webhook_paths(configuration, "github", agent),
            api=GithubApi(auth, clock, api_url=configuration.github_api_url),
            installation=given.installation_id,
            host=host,
            name_now=lambda number: base.stores.names.of(host, number),
            link_of=link_of,
            uploads=configuration.data_dir / "uploads",
            web_url=configuration.github_web_url,
        )
        if given.bot_login is not None:
            directory.introduce(Identity(agent, given.bot_login.removesuffix(BOT) + BOT))
        made.append(GithubAdapter(agent, app, directory, clock))
        repositories[agent] = GithubRepositories(agent, app.api, directory)
        catalogs[agent] = Catalog(app.api, clock, installation=given.installation_id)
    link = base.stores.sessions.link
    git_url = configuration.github_git_url
    forge = GithubForge(repositories, catalogs, clock, git_url=git_url, link=link)
    return made, forge


def _webhook_paths(configuration: Configuration, service: str, agent: str) -> tuple[str, ...]:
    """List where an agent's webhooks arrive: the plain path is the default agent's."""
    own = f"/webhooks/{service}/{agent}"
    return (f"/webhooks/{service}", own) if agent == configuration.default_agent else (own,)


def _linear(base: Foundation) -> Iterator[Adapter]:
    configuration = base.configuration
    found = [
        (agent, credentials)
        for (_, agent), credentials in configuration.credentials.items()
        if isinstance(credentials, LinearCredentials)
    ]
    if not found:
        return
    # httpx takes 0.1 s, and ciphers half of that.
    from app.config.sealing import Sealer  # noqa: PLC0415
    from app.services.linear.adapter import LinearAdapter  # noqa: PLC0415
    from app.services.linear.grants import Grants  # noqa: PLC0415
    from app.services.linear.manifest import install_address  # noqa: PLC0415

    sealer = Sealer(base.secrets.secret_key)

    def home(key: SessionKey) -> PlaceKey | None:
        session = base.stores.sessions.find(key)
        return session.place if session is not None else None

    for agent, credentials in found:
        yield LinearAdapter(
            agent,
            credentials,
            api_url=configuration.linear_api_url,
            clock=base.clock,
            vault=base.vault,
            is_default=agent == configuration.default_agent,
            bots=[who.id for who in configuration.allowed_bots if who.service == "linear"],
            home=home,
            uploads=configuration.data_dir / "uploads",
            grants=Grants(adapter_name("linear", agent), base.stores.sealed, sealer),
            install_url=install_address(configuration.base_url, agent),
        )
