"""Builds the Linear adapter of every agent that has credentials there."""

from __future__ import annotations

from collections.abc import Sequence

from app.config.sealing import Sealer
from app.core.adapters import Adapter
from app.model.keys import PlaceKey, SessionKey, adapter_name
from app.services.linear.adapter import LinearAdapter
from app.services.linear.grants import Grants
from app.services.linear.manifest import install_address
from app.services.linear.settings import NAME, LinearCredentials, LinearSettings
from app.services.service import BuildContext


def build(context: BuildContext) -> Sequence[Adapter]:
    """Build one adapter per agent."""
    configuration, stores = context.configuration, context.stores
    sealer = Sealer(context.secret_key)

    def home(key: SessionKey) -> PlaceKey | None:
        session = stores.sessions.find(key)
        if session is None:
            return None
        # A session about work that began elsewhere is a place of its own.
        return session.place if session.place.service == NAME else PlaceKey(NAME, key.external)

    return [
        LinearAdapter(
            agent,
            credentials,
            api_url=configuration.settings_of(LinearSettings).api_url,
            clock=context.clock,
            vault=context.vault,
            pictures=context.pictures.get(agent, ()),
            paths=configuration.webhook_paths(NAME, agent),
            bots=[who.id for who in configuration.settings.allowed_bots if who.service == NAME],
            home=home,
            uploads=context.uploads,
            grants=Grants(adapter_name(NAME, agent), stores.sealed, sealer),
            install_url=install_address(configuration.base_url, agent),
            proactive=configuration.settings_of(LinearSettings).proactive,
        )
        for agent, credentials in configuration.credentials_of(LinearCredentials).items()
    ]
