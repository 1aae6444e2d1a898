"""Builds the adapters of every agent on every service that runs."""

from __future__ import annotations

from itertools import chain

from app.main.resources import Resources
from app.services import registered_services
from app.services.service import BuildContext, Presence
from app.services.web.adapter import WebAdapter


def presence(base: Resources) -> Presence:
    """Build all agents' adapters, and the forge if a service has one."""
    running = base.configuration.services
    context = BuildContext(
        configuration=base.configuration,
        secret_key=base.secrets.secret_key,
        vault=base.vault,
        clock=base.clock,
        stores=base.stores,
    )
    built = [each.build(context) for each in registered_services() if each.name in running]
    on_page = map(WebAdapter, base.configuration.agents)
    return Presence(
        (*on_page, *chain.from_iterable(each.adapters for each in built)),
        next((each.forge for each in built if each.forge is not None), None),
    )
