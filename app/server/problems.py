"""Turns errors into HTTP answers: problem+json with our own text, never a traceback.

A form that a browser sends by itself is answered with a plain page.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from html import escape
from http import HTTPStatus
from typing import Any, Final

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

logger = logging.getLogger(__name__)

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
_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fbfbfa; --card: #fff; --line: #e4e4e0; --ink: #1d1d1b;
  --soft: #6b6b66; --accent: #3557d6; }
@media (prefers-color-scheme: dark) { :root { --bg: #161615; --card: #212120; --line: #31312f;
  --ink: #ececea; --soft: #a5a59f; --accent: #8ba3ff; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-content: center; padding: 24px;
  font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--bg); }
main { width: min(36rem, 100vw - 48px); }
p { margin: 0 0 1em; } .brand { color: var(--soft); margin: 0; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .75em; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
pre { margin: 0 0 1em; padding: 12px 14px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); white-space: pre-wrap; overflow-wrap: anywhere; }
a { color: var(--accent); }
button { font: inherit; padding: 8px 20px; border: 0; border-radius: 10px; cursor: pointer;
  color: var(--bg); background: var(--accent); }
"""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
    ),
    # With `no-referrer` a browser hides its origin even from us, and the button is refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_SHAPE = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["title", "status"],
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    int(status): {"description": status.phrase, "content": {PROBLEM: {"schema": _SHAPE}}}
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


def plain_page(status: int, title: str, words: str) -> HTMLResponse:
    """Make a page of a few words, which runs no script and loads nothing."""
    content = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Agent Bridge</title>
<style>{_STYLE}</style>
<main>
<p class="brand">Agent Bridge</p>
<h1>{title}</h1>
{words}
</main>
"""
    return HTMLResponse(content, status_code=status, headers=_HEADERS)


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
        sentence = f"{detail[:1].upper()}{detail[1:].rstrip('.')}."
        words = (
            f'<p role="alert">{escape(sentence)}</p><p>Go back in your browser to what you wrote, '
            'or <a href="/">open the page</a>.</p>'
        )
        return plain_page(status, "This did not work", words)
    return problem(status, detail)
