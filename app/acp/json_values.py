"""Reads untrusted JSON: each function returns the wanted type, or nothing.

Pure; nothing here raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

LABEL_CHARACTERS = 16 * 1024  # the longest honest title is a command with a whole script in it


def string(value: object) -> str | None:
    """Read a text."""
    return value if isinstance(value, str) else None


def label(value: object) -> str | None:
    """Read a text that names something; a longer one is cut, and ends with an ellipsis."""
    if not isinstance(value, str) or len(value) <= LABEL_CHARACTERS:
        return string(value)
    return f"{value[:LABEL_CHARACTERS]}…"


def count(value: object) -> int | None:
    """Read a whole number that is not negative."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def amount(value: object) -> float | None:
    """Read a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def price(value: object) -> float | None:
    """Read a finite number that is not negative."""
    number = amount(value)
    return number if number is not None and number >= 0 else None


def mapping(value: object) -> Json:
    """Read an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """Read the objects of a list and skip everything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_shallow(value: object, depth: int) -> bool:
    """Tell whether a value is nested at most `depth` levels deep."""
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, (list, dict))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False
