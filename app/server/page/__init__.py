"""Serves the page in the browser: threads, actions, uploads and live updates."""

from __future__ import annotations

from fastapi import FastAPI

from app.server.page import (
    actions,
    assets,
    composer,
    routes,
    uploads,
    workspace,
)


def install(application: FastAPI) -> None:
    """Add the page to an application."""
    for part in (
        routes,
        actions,
        composer,
        uploads,
        assets,
        workspace,
    ):
        application.include_router(part.router)
