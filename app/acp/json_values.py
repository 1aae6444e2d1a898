"""Reads JSON of which nothing is known: every look gives the wanted kind of value, or nothing.

Pure, and nothing here raises, whatever an agent sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def string(value: object) -> str | None:
    """Read a text."""
    return value if isinstance(value, str) else None


def count(value: object) -> int | None:
    """Read a number of things."""
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


def mapping(value: object) -> Json:
    """Read an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """Read the objects of a list, and leave out whatever else stands in it."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def shallow(value: object, depth: int) -> bool:
    """Tell whether a value is nested no deeper than so many levels."""
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
