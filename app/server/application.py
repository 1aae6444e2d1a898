"""Builds the FastAPI application: health, metrics, API."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from app.server import api, problems
from app.server.api import PartsOf
from app.server.parts import Parts

VERSION = "0.1.0"


def build(parts: Parts) -> FastAPI:
    """Build the application on the parts of one bridge."""
    application = FastAPI(title="Agent Bridge", version=VERSION, docs_url=None, redoc_url=None)
    application.state.parts = parts
    problems.install(application)
    application.include_router(api.router)
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
