"""Builds the FastAPI application: health, metrics, API, log-in, the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI

from app.core.runtime import Runtime
from app.server import (
    api,
    elsewhere,
    health,
    install,
    login_pages,
    page,
    problems,
)
from app.server.filters import refuse_unknown_parameters
from app.server.login import visitor
from app.server.problems import RESPONSES
from app.server.site import Site

VERSION = "0.1.0"
WEBHOOKS = "/webhooks/"
AGENT = {"name": "agent", "in": "path", "required": True, "schema": {"type": "string"}}
WEBHOOK: dict[str, Any] = {
    "summary": "Receive a signed event from a platform",
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
    "responses": {
        "200": {"description": "Stored"},
        **{str(status): RESPONSES[status] for status in (401, 503)},
    },
}


class Application(FastAPI):
    """FastAPI application that also describes the webhooks that the front handles."""

    def __init__(self, webhooks: Iterable[str]) -> None:
        super().__init__(
            title="Agent Bridge",
            version=VERSION,
            docs_url=None,
            redoc_url=None,
            dependencies=[Depends(refuse_unknown_parameters)],
        )
        self._webhooks = tuple(webhooks)

    def openapi(self) -> dict[str, Any]:
        """Describe every path, including webhooks."""
        described = super().openapi()
        for path in self._webhooks:
            # With a placeholder: anyone can read this, and the names of agents are not public.
            shown, slash, _agent = path.removeprefix(WEBHOOKS).partition("/")
            agent = [AGENT] if slash else []
            described["paths"].setdefault(
                f"{WEBHOOKS}{shown}{'/{agent}' if slash else ''}",
                {"post": WEBHOOK | {"parameters": agent}},
            )
        return described


def build(
    runtime: Runtime,
    site: Site,
    webhooks: Iterable[str] = (),
    *,
    features: Sequence[object] = (),
    routers: Iterable[APIRouter] = (),
) -> FastAPI:
    """Build the application of one bridge, with the routes of its features.

    Raises:
        ConfigurationError: a route is not in the table of rights.
    """
    application = Application(webhooks)
    application.state.runtime = runtime
    application.state.site = site
    application.state.features = features
    problems.install(application)
    login_pages.install(application)
    elsewhere.install(application)
    application.include_router(api.router)
    application.include_router(install.router)
    for router in routers:
        application.include_router(router)
    page.install(application)
    application.include_router(health.router)
    site.rights.check(application, visitor)
    return application
