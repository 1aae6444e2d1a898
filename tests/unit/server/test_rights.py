"""The table of rights has every route and command, and a bridge with another one does not start."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import Depends, FastAPI

from app.errors import ConfigurationError
from app.features import registered_features
from app.server import api, health, install, login_pages, page
from app.server.login import Visitor, visitor
from app.server.rights import COMMANDS, TABLE, Rights, routes_of
from tests.support import command_help


def whole() -> FastAPI:
    """Join every route of the bridge."""
    application = FastAPI(docs_url=None, redoc_url=None)
    login_pages.install(application)
    page.install(application)
    features = [router for each in registered_features() for router in each.routers()]
    for router in (api.router, install.router, health.router, *features):
        application.include_router(router)
    return application


def test_the_table_has_every_route_once_and_no_other() -> None:
    listed = [route for routes in TABLE.values() for route in routes]

    assert sorted(listed) == sorted(f"{method} {path}" for method, path, _ in routes_of(whole()))


def test_every_route_that_is_not_public_looks_at_who_asks() -> None:
    Rights().check(whole(), visitor)


def test_the_table_has_every_command() -> None:
    words = [
        line.removeprefix("$ agent-bridge ")
        for line in command_help.KEPT.read_text().splitlines()
        if line.startswith("$ agent-bridge ")
    ]
    groups = {each.partition(" ")[0] for each in words if " " in each}

    listed = sorted(command for commands in COMMANDS.values() for command in commands)

    assert listed == sorted(set(words) - groups)


def test_a_route_that_the_table_lacks_keeps_the_bridge_from_starting() -> None:
    application = FastAPI(openapi_url=None)
    application.add_api_route("/secret", _guarded)

    with pytest.raises(ConfigurationError, match="GET /secret is not in the table of rights"):
        Rights().check(application, visitor)
    Rights({"GET /secret": "viewer"}).check(application, visitor)


def test_a_route_that_asks_nobody_keeps_the_bridge_from_starting() -> None:
    application = FastAPI(openapi_url=None)
    application.add_api_route("/secret", _unguarded)

    with pytest.raises(ConfigurationError, match="GET /secret does not look at who asks"):
        Rights({"GET /secret": "admin"}).check(application, visitor)
    Rights({"GET /secret": "nothing"}).check(application, visitor)


def test_a_package_can_only_ask_for_roles_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="GET /dice needs 'owner'"):
        Rights({"GET /dice": "owner"})


async def _guarded(_who: Annotated[Visitor, Depends(visitor)]) -> None:
    """Answer people who are signed in."""


async def _unguarded() -> None:
    """Answer anyone."""
