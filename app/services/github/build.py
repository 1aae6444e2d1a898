"""Builds the presence on GitHub of every agent that has an App, and the forge of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

from app.config import Configuration
from app.config.network import parse_host
from app.config.sealing import Sealer
from app.core.adapters import Adapter
from app.model.keys import SessionKey, adapter_name
from app.services.common.identity import Remembered
from app.services.github.accounts import Accounts, Directory, Installations
from app.services.github.adapter import App, GithubAdapter
from app.services.github.api import GithubApi
from app.services.github.auth import AppAuth
from app.services.github.deliveries import Hook
from app.services.github.forge import GithubForge
from app.services.github.names import BOT, Identity
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.service import BuildContext, Presence


def build(context: BuildContext) -> Presence:
    """Make one adapter per App, and the forge."""
    configuration, clock, stores = context.configuration, context.clock, context.stores
    owned, settings = (
        configuration.credentials_of(GithubCredentials),
        configuration.settings_of(GithubSettings),
    )
    remembered = Remembered(NAME, stores.sealed, clock)
    directory = Directory(owned, remembered.all(context.absent(owned)))
    host = urlsplit(configuration.settings.git_url).netloc
    sealer = Sealer(context.secret_key)
    accounts = Accounts(_logins(configuration), host, stores.sealed, sealer, clock)

    def link_of(key: SessionKey) -> str:
        session = stores.sessions.find(key)
        found = stores.proposals.latest(session.id) if session is not None else None
        return found.link if found is not None and not found.outcome else ""

    own = [*filter(None, [parse_host(urlsplit(settings.web_url).netloc)])]
    made: list[Adapter] = []
    apis: dict[str, GithubApi] = {}
    for agent, given in owned.items():
        auth = AppAuth(
            given.app_id,
            given.private_key,
            clock,
            keep_secret=context.vault.register,
            installations=Installations(given.installations, given.installation_id),
        )
        secrets = filter(None, (given.webhook_secret, given.webhook_secret_before))
        app = App(
            hook=Hook(
                adapter=adapter_name(NAME, agent),
                app_id=given.app_id,
                secrets=tuple(secret.get_secret_value().encode() for secret in secrets),
            ),
            paths=configuration.webhook_paths(NAME, agent),
            api=GithubApi(
                auth,
                clock,
                api_url=settings.api_url,
                vault=context.vault,
                pictures=[*own, *context.pictures.get(agent, ())],
            ),
            accounts=accounts,
            host=host,
            name_now=lambda number: stores.names.of(host, number),
            link_of=link_of,
            uploads=context.uploads,
            web_url=settings.web_url,
            remember=partial(remembered.note, agent),
        )
        if given.bot_login is not None:
            directory.introduce(Identity(agent, given.bot_login.removesuffix(BOT) + BOT))
        made.append(GithubAdapter(agent, app, directory, clock))
        apis[agent] = app.api
    link, git_url = stores.sessions.link, configuration.settings.git_url
    return Presence(made, GithubForge(apis, directory, clock, git_url=git_url, link=link))


def _logins(configuration: Configuration) -> Iterator[str]:
    """Yield the logins that settings give rights to; a number needs no lookup."""
    for who in configuration.settings.allowed_users:
        if who.service == NAME and not who.id.isdigit():
            yield who.id
    for given in configuration.credentials_of(GithubCredentials).values():
        yield from (each for each in given.installations if not each.isdigit())
