"""Reads the query of API requests: filters that lists share, and no parameter without a meaning.

A parameter that is not in the OpenAPI description is refused: a filter with a typing error would
otherwise list everything, and look right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from http import HTTPStatus
from math import nan
from typing import Annotated

from fastapi import HTTPException, Query, Request
from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from app.core.runtime import Runtime
from app.errors import NotFound
from app.model.conversations import ListFilter
from app.model.delegation import SERVICE as AMONG_AGENTS
from app.services import PAGE, registered_services

API = "/api/"
LAST_SECOND = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
"""The last time that a calendar has."""

AgentName = Annotated[str | None, Query(description="Only those of the agent with this name.")]
ServiceName = Annotated[
    str | None, Query(description="Only those on this service: slack, github, linear, web, ...")
]


def parse_time(text: str) -> float:
    """Read a time that is written as ISO 8601 or in seconds since 1970; without a zone it is UTC.

    Raises:
        PydanticCustomError: it is neither, or a time that no calendar has.
    """
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            seconds = nan
    if 0 <= seconds <= LAST_SECOND:
        return seconds
    raise PydanticCustomError(
        "time", "Write a time as 2026-01-31T09:00:00Z or in seconds since 1970"
    )


Moment = Annotated[
    float,
    BeforeValidator(parse_time),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}]}),
]
Since = Annotated[
    Moment | None,
    Query(
        description="Only those from this time on: ISO 8601, in UTC unless it says otherwise, or "
        "seconds since 1970.",
        examples=["2026-01-31T09:00:00Z", 1769850000],
    ),
]


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse a request to the API with a query parameter that its route does not have.

    Raises:
        HTTPException: it has one.
    """
    if not request.query_params or not request.url.path.startswith(API):
        return
    described = await asyncio.to_thread(request.app.openapi)
    operation = described["paths"][request.scope["route"].path_format][request.method.lower()]
    known = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    for name in request.query_params:
        if name not in known:
            raise _refuse(f"Unknown query parameter {name[:100]!r}.", name, known)


def read_filter(
    runtime: Runtime,
    *,
    agent: str | None = None,
    service: str | None = None,
    state: str | None = None,
    since: float | None = None,
) -> ListFilter:
    """Check the filters of a list.

    Raises:
        HTTPException: there is no such agent or service.
        AgentRemoved: the agent was removed.
    """
    return ListFilter(find_agent_id(runtime, agent), find_service(runtime, service), state, since)


def find_agent_id(runtime: Runtime, name: str | None) -> str | None:
    """Return the id of the agent that a filter names.

    Raises:
        HTTPException: there is no such agent.
        AgentRemoved: it was removed.
    """
    if name is None:
        return None
    try:
        return runtime.agents.find(name).id
    except NotFound:
        known = [each.name for each in runtime.agents.values()]
        raise _refuse(f"query.agent: there is no agent {name[:100]!r}.", name, known) from None


def find_service(runtime: Runtime, name: str | None) -> str | None:
    """Return the service that a filter names.

    Raises:
        HTTPException: there is no such service.
    """
    installed = (each.name for each in registered_services())
    used = (name.partition(":")[0] for name in runtime.adapters)
    known = dict.fromkeys((PAGE, *installed, *used, AMONG_AGENTS))
    if name is None or name in known:
        return name
    raise _refuse(f"query.service: there is no service {name[:100]!r}.", name, known)


def _refuse(problem: str, name: str, known: Iterable[str]) -> HTTPException:
    """Say what is wrong, and what was probably meant."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = f" Known: {', '.join(names)}." if names else " This request takes none."
    return HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, f"{problem}{hint}{listed}")
