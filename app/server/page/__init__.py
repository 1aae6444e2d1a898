"""Serves the page in the browser: threads, actions, uploads and live updates."""

from __future__ import annotations

from fastapi import FastAPI

from app.server.page import (
    actions,
    agent_pages,
    agents,
    assets,
    composer,
    personas,
    routes,
    uploads,
    workspace,
)


def install(application: FastAPI) -> None:
    """Add the page to an application."""
    application.state.recent = agent_pages.Recent()
    for part in (
        routes,
        actions,
        composer,
        uploads,
        assets,
        workspace,
    ):
        application.include_router(part.router)
    own = (personas, agents)
    for router in (router for part in own for router in (part.pages, part.forms)):
        application.include_router(router)
