"""Probes a token's scopes: Linear has no call that lists them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from app.services.linear.api import LinearApi, LinearFailed, LinearRefused


def lacking(viewer: dict[str, Any]) -> list[str]:
    """List the scopes that an app user lacks; reading it proves `read`."""
    shown = {"app:assignable": "isAssignable", "app:mentionable": "isMentionable"}
    return [scope for scope, field in shown.items() if not viewer[field]]


async def may_write(api: LinearApi) -> bool | None:
    """Try to change a session that does not exist; None if the answer is unclear.

    Raises:
        PostDelayed: not now.
        ServiceRefused: not with these credentials.
    """
    try:
        await api.call("update_session", id=str(uuid4()), input={"plan": []})
    except LinearFailed:
        return None
    except LinearRefused as error:
        if error.missing:
            return True
        return False if error.forbidden else None
    return None
