"""Merges what other programs keep with a session, within bounds; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from app.errors import Conflict
from app.model import wording

MOST_KEYS: Final = 64
MOST_BYTES: Final = 16 * 1024
"""All attributes of a session together, as JSON: they are read with it."""
KEY: Final = r"^[a-z0-9_.-]{1,64}$"


def merge_attributes(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with some changed; None removes one.

    Raises:
        Conflict: they are too many, or too large.
    """
    merged = {key: value for key, value in {**known, **changes}.items() if value is not None}
    if len(merged) > MOST_KEYS:
        raise Conflict(wording.TOO_MANY_ATTRIBUTES.format(most=MOST_KEYS))
    if len(json.dumps(merged, ensure_ascii=False).encode()) > MOST_BYTES:
        raise Conflict(wording.ATTRIBUTES_TOO_LARGE.format(most=MOST_BYTES))
    return merged
