"""A Starlette route that only checks the HMAC: the limit that the bridge is measured against."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.receivers.asgi import serve, tally
from bench.webhooks import PATH, is_signed


async def check(request: Request) -> Response:
    """Check the HMAC and say 200."""
    body = await request.body()
    if not is_signed(dict(request.scope["headers"]), body):
        return Response(status_code=401)
    tally.add()
    return Response(status_code=200)


async def health(_request: Request) -> Response:
    """Say 200."""
    return Response(status_code=200)


if __name__ == "__main__":
    serve(Starlette(routes=[Route(PATH, check, methods=["POST"]), Route("/healthz", health)]))
