"""Builds the FastAPI application: health, metrics, API, signing in, the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from app.server import api, install, login, pages, problems
from app.server.parts import Parts, PartsOf
from app.server.problems import RESPONSES

VERSION = "0.1.0"
WEBHOOK = {
    "summary": "Take a signed event of a platform",
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}}}},
    "responses": {
        "200": {"description": "It is stored"},
        **{str(status): RESPONSES[status] for status in (401, 503)},
    },
}


class Application(FastAPI):
    """FastAPI that also describes what the front takes before it."""

    def __init__(self, webhooks: Iterable[str]) -> None:
        super().__init__(title="Agent Bridge", version=VERSION, docs_url=None, redoc_url=None)
        self._webhooks = tuple(webhooks)

    def openapi(self) -> dict[str, Any]:
        """Describe every path, webhooks among them."""
        described = super().openapi()
        for path in self._webhooks:
            described["paths"].setdefault(path, {"post": WEBHOOK})
        return described


def build(parts: Parts, webhooks: Iterable[str] = ()) -> FastAPI:
    """Build the application on the parts of one bridge."""
    application = Application(webhooks)
    application.state.parts = parts
    problems.install(application)
    login.install(application)
    application.include_router(api.router)
    application.include_router(install.router)
    pages.install(application)
    application.add_api_route("/healthz", healthy, methods=["GET"])
    application.add_api_route("/readyz", ready, methods=["GET"])
    application.add_api_route("/metrics", metrics, methods=["GET"])
    return application


async def healthy() -> dict[str, str]:
    """Say that the process lives."""
    return {"status": "ok"}


async def ready(parts: PartsOf) -> Response:
    """Say whether everything that must work does work."""
    checks = await parts.ready()
    body: dict[str, Any] = {
        "ready": all(check.ok for check in checks),
        "checks": [{"name": check.name, "ok": check.ok, "words": check.words} for check in checks],
    }
    return JSONResponse(body, status_code=200 if body["ready"] else 503)


async def metrics(parts: PartsOf) -> Response:
    """Give the counters to Prometheus."""
    return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4")
