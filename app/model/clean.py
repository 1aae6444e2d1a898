"""Replaces what some database or encoding refuses: NUL, halves of surrogate pairs, odd numbers.

Pure. Each refused character becomes U+FFFD, so that what it kept apart stays apart: a known secret
cannot be put together by leaving something out after it was looked for.
"""

from __future__ import annotations

import math
from typing import Any

REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Return a text that every database and encoding takes."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """Return a JSON value with clean texts, and without numbers that JSON has no word for."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_json(key): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
