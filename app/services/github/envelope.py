"""Opens an event of GitHub, if it is one that somebody wants to read; pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from app.errors import DeliveryUnreadable
from app.services.github.naming import NameOf
from app.services.github.payloads import Payload

Wanted = Mapping[str, tuple[str, ...]]
"""Events, each with its actions."""


def opened(
    event: str, body: bytes, wanted: Wanted, installation: str | None, name_of: NameOf
) -> Payload | None:
    """Read an event; None if it is not wanted, or of another installation than the one set up.

    `name_of` knows what a repository is called by now.

    Raises:
        DeliveryUnreadable: it is not what GitHub sends.
    """
    if event not in wanted:
        return None
    try:
        payload = Payload.model_validate_json(body).called(name_of)
    except ValidationError as error:
        raise DeliveryUnreadable(f"this is no {event} of GitHub") from error
    given = payload.installation
    foreign = installation is not None and (given is None or str(given.id) != installation)
    return None if foreign or payload.action not in wanted[event] else payload
