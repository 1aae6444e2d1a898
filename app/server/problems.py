"""Turns errors into HTTP answers: problem+json with our own text, never a traceback.

A form that a browser sends by itself is answered with a page.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from html import escape
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from app.errors import (
    AgentRemoved,
    BridgeError,
    ConfigurationError,
    Conflict,
    DeliveryUnreadable,
    FileRefused,
    LoginTooOld,
    NotFound,
    StoreUnavailable,
)
from app.server import login_pages

logger = logging.getLogger(__name__)

T = TypeVar("T")

STATUS: tuple[tuple[type[BridgeError], HTTPStatus], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (AgentRemoved, HTTPStatus.GONE),
    (ConfigurationError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (LoginTooOld, HTTPStatus.FORBIDDEN),
    (Conflict, HTTPStatus.CONFLICT),
    (FileRefused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (DeliveryUnreadable, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


def _describe(status: HTTPStatus) -> dict[str, Any]:
    shape = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
        },
        "required": ["title", "status"],
    }
    return {"description": status.phrase, "content": {PROBLEM: {"schema": shape}}}


PROBLEM = "application/problem+json"
AGAIN_SECONDS = 5
"""When to try again what is not possible now."""
_AWAY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}">
<title>Agent Bridge</title></head>
<body><h1>The database cannot be used now</h1>
<p>{cause}. Agents that work go on when it is there again, and so does this page.</p>
</body></html>
"""
RESPONSES: dict[int | str, dict[str, Any]] = {
    int(status): _describe(status)
    for status in (
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.GONE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.SERVICE_UNAVAILABLE,
    )
}
"""The error answers of a route, as OpenAPI describes them."""


def problem(status: int, detail: str) -> JSONResponse:
    """Answer with a problem; one that passes says when to try again."""
    is_passing = status == HTTPStatus.SERVICE_UNAVAILABLE
    return JSONResponse(
        {"title": HTTPStatus(status).phrase, "status": status, "detail": detail},
        status_code=status,
        media_type=PROBLEM,
        headers={"Retry-After": str(AGAIN_SECONDS)} if is_passing else None,
    )


async def end_when_away(events: AsyncIterator[T]) -> AsyncIterator[T]:
    """Pass on a stream as long as the store can be read: then its reader connects again."""
    with suppress(StoreUnavailable):
        async for event in events:
            yield event


def install(application: FastAPI) -> None:
    """Answer every failure of an application with a problem."""
    application.add_exception_handler(BridgeError, _bridge_error)
    application.add_exception_handler(HTTPException, _http_error)
    application.add_exception_handler(RequestValidationError, _invalid)
    application.add_exception_handler(Exception, _unexpected)


async def _bridge_error(request: Request, error: Exception) -> Response:
    if isinstance(error, StoreUnavailable) and "text/html" in request.headers.get("accept", ""):
        page = _AWAY.format(seconds=AGAIN_SECONDS, cause=escape(error.cause))
        headers = {"Retry-After": str(AGAIN_SECONDS)}
        return HTMLResponse(page, HTTPStatus.SERVICE_UNAVAILABLE, headers)
    for kind, status in STATUS:
        if isinstance(error, kind):
            return _refuse(request, status, str(error))
    return _refuse(request, HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refuse(request, error.status_code, str(error.detail))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return _refuse(request, HTTPStatus.UNPROCESSABLE_ENTITY, f"{where}: {first['msg']}")


async def _unexpected(request: Request, error: Exception) -> Response:
    logger.error("request failed", exc_info=error)
    words = "Something went wrong. See the bridge's log."
    return _refuse(request, HTTPStatus.INTERNAL_SERVER_ERROR, words)


def _refuse(request: Request, status: int, detail: str) -> Response:
    """Answer with a problem, or with a page where a person sent a form."""
    is_form = request.method == "POST" and not request.url.path.startswith("/api/")
    if is_form and "text/html" in request.headers.get("accept", ""):
        return login_pages.refused(status, detail)
    return problem(status, detail)
