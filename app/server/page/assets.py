"""Serves style, scripts and icon; addresses change with content, so browsers may cache them.

They are compressed once, when they are read. Pages and streams are not compressed: the length of a
page would tell of the secrets in it, and a stream would wait for more before it says anything.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Header
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
    compressed: bytes
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
async def read_asset(
    name: str, v: str = "", accept_encoding: Annotated[str, Header()] = ""
) -> Response:
    """Read one file, compressed if the browser takes that."""
    asset = assets().get(name)
    if asset is None:
        raise NotFound("file", name)
    headers = {
        "Cache-Control": _YEAR if v == asset.version else "no-cache",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        # An icon that is opened directly is a document.
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    if "gzip" not in accept_encoding:
        return Response(asset.body, media_type=asset.media_type, headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(asset.compressed, media_type=asset.media_type, headers=headers)


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    version = hashlib.sha256(body).hexdigest()[:12]
    return Asset(body, gzip.compress(body), _TYPES[path.suffix], version)
