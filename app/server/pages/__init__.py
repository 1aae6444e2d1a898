"""The page in the browser: what it shows, what people do on it, and how it stays up to date."""

from __future__ import annotations

from fastapi import FastAPI

from app.server.pages import actions, assets, routes, uploads, workspace


def install(application: FastAPI) -> None:
    """Add the page to an application."""
    for part in (routes, actions, uploads, assets, workspace):
        application.include_router(part.router)
