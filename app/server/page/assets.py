"""Serves style, scripts and icon; addresses change with content, so browsers may cache them.

They are minified as they are read, so there is no build step and no second copy to keep.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import rcssmin  # type: ignore[import-untyped]  # it has no types
import rjsmin  # type: ignore[import-untyped]  # it has no types
from fastapi import APIRouter
from fastapi.responses import Response

from app.errors import NotFound

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_YEAR: Final = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file that the page needs."""

    body: bytes
    media_type: str
    version: str


@cache
def assets() -> dict[str, Asset]:
    """Read all files once."""
    return {path.name: _asset(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


def addresses() -> dict[str, str]:
    """Return the address of each file."""
    return {name: f"/static/{name}?v={asset.version}" for name, asset in assets().items()}


@router.get("/static/{name}")
async def read_asset(name: str, v: str = "") -> Response:
    """Read one file."""
    asset = assets().get(name)
    if asset is None:
        raise NotFound("file", name)
    headers = {
        "Cache-Control": _YEAR if v == asset.version else "no-cache",
        "X-Content-Type-Options": "nosniff",
        # An icon that is opened directly is a document.
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(asset.body, media_type=asset.media_type, headers=headers)


def _asset(path: Path) -> Asset:
    body = _minify(path).encode()
    return Asset(body, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:12])


def _minify(path: Path) -> str:
    text = path.read_text()
    if path.suffix == ".css":
        return str(rcssmin.cssmin(text))
    return str(rjsmin.jsmin(text)) if path.suffix == ".js" else text
