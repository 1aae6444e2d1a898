"""What goes to the simulated GitHub and what comes back: requests, replies, refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs


@dataclass(frozen=True)
class Reply:
    """What GitHub answers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    """GitHub says no."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        self.reply = Reply(
            status,
            {"message": message, "documentation_url": "https://docs.github.example"},
            {name.replace("_", "-"): value for name, value in headers.items()},
        )
        super().__init__(message)


def not_found() -> Refused:
    """Say that there is no such thing; strangers are told the same."""
    return Refused(404, "Not Found")


def invalid(resource: str, field_name: str, message: str) -> Refused:
    """Say what is wrong with a field."""
    refused = Refused(422, "Validation Failed")
    error = {"resource": resource, "field": field_name, "code": "custom", "message": message}
    refused.reply.body["errors"] = [error]
    return refused


def unprocessable(message: str) -> Refused:
    """Say that a call is well-formed and still not possible."""
    refused = Refused(422, "Unprocessable Entity")
    refused.reply.body["errors"] = [message]
    return refused


@dataclass(frozen=True)
class Request:
    """One call, as it came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    data: dict[str, Any]

    def parameter(self, name: str, usual: str = "") -> str:
        """Read a parameter of the query."""
        return parse_qs(self.query).get(name, [usual])[0]
