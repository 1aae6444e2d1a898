"""Builds the Slack adapter of every agent that has an app there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from app.core.adapters import Adapter
from app.model.keys import SessionKey
from app.services.common.identity import Remembered
from app.services.service import BuildContext
from app.services.slack.adapter import SlackAdapter, SlackApp
from app.services.slack.auth import Colleagues, Seal
from app.services.slack.settings import NAME, SlackCredentials, SlackSettings


def build(context: BuildContext) -> Sequence[Adapter]:
    """Build one adapter per app; the apps of one bridge know each other."""
    configuration, sessions = context.configuration, context.stores.sessions
    owners = configuration.credentials_of(SlackCredentials)
    remembered = Remembered(NAME, context.stores.sealed, context.clock)
    colleagues = Colleagues(owners, remembered.all(context.absent(owners)))
    seal = Seal(context.secret_key.get_secret_value())
    bots = frozenset(who.id for who in configuration.settings.allowed_bots if who.service == NAME)

    def title(key: SessionKey) -> str:
        found = sessions.find(key)
        return found.title if found is not None else ""

    def adapter(name: str, credentials: SlackCredentials) -> SlackAdapter:
        return SlackAdapter(
            SlackApp(
                agent=name,
                bot_token=credentials.bot_token.get_secret_value(),
                app_token=credentials.app_token.get_secret_value(),
                suffix=configuration.agents[name].setting(""),
                base_url=configuration.settings_of(SlackSettings).api_url,
                bots=bots,
                vault=context.vault,
                remember=partial(remembered.note, name),
            ),
            colleagues=colleagues,
            seal=seal,
            active=lambda since: sessions.active(NAME, name, since=since),
            title=title,
            uploads=context.uploads,
            clock=context.clock,
        )

    return [adapter(name, credentials) for name, credentials in owners.items()]
