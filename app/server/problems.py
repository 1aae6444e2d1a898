"""Turns errors into HTTP answers: problem+json with our own text, never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from app.errors import (
    AgentRemoved,
    BridgeError,
    ConfigurationError,
    Conflict,
    DeliveryUnreadable,
    FileRefused,
    NotFound,
    StoreUnavailable,
)

logger = logging.getLogger(__name__)

STATUS: tuple[tuple[type[BridgeError], HTTPStatus], ...] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (AgentRemoved, HTTPStatus.GONE),
    (ConfigurationError, HTTPStatus.UNPROCESSABLE_ENTITY),
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
    """Answer with a problem."""
    return JSONResponse(
        {"title": HTTPStatus(status).phrase, "status": status, "detail": detail},
        status_code=status,
        media_type=PROBLEM,
    )


def install(application: FastAPI) -> None:
    """Answer every failure of an application with a problem."""
    application.add_exception_handler(BridgeError, _bridge_error)
    application.add_exception_handler(HTTPException, _http_error)
    application.add_exception_handler(RequestValidationError, _invalid)
    application.add_exception_handler(Exception, _unexpected)


async def _bridge_error(_request: Request, error: Exception) -> JSONResponse:
    for kind, status in STATUS:
        if isinstance(error, kind):
            return problem(status, str(error))
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


async def _http_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{where}: {first['msg']}")


async def _unexpected(_request: Request, error: Exception) -> JSONResponse:
    logger.error("request failed", exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong. See the bridge's log.")
