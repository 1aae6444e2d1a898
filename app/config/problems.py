"""Words a wrong setting as its name, what is wrong and what to do.

The value itself never gets into a message, an exception's context or a log.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from app.errors import ConfigurationError

_REFUSAL = "setting"

# How alike two names must be before one is suggested for the other.
_ALIKE = 0.75


def refusal(problem: str, remedy: str) -> PydanticCustomError:
    """Build the error that our validators raise to refuse a value."""
    words = {"problem": problem, "remedy": remedy}
    return PydanticCustomError(_REFUSAL, "{problem}. {remedy}", words)


def first_problem(error: ValidationError) -> tuple[tuple[int | str, ...], str, str]:
    """Return the location, text and remedy of the first problem, without any value."""
    details = error.errors(include_url=False, include_input=False)[0]
    context = details.get("ctx", {})
    kind = details["type"]
    if kind == _REFUSAL:
        return details["loc"], context["problem"], context["remedy"]
    problem, remedy = _WORDS.get(kind, _UNCLEAR)(context)
    return details["loc"], problem, remedy


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a remedy that suggests the known name closest to a misspelt one."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return f"Did you mean {close[0]}?" if close else otherwise


def set_but_empty(name: str) -> ConfigurationError:
    """Refuse a setting that was meant to have a value."""
    return ConfigurationError(name, "is set but empty", "Give it a value, or remove it.")


_Words = Callable[[Mapping[str, Any]], tuple[str, str]]


def _always(problem: str, remedy: str) -> _Words:
    return lambda _context: (problem, remedy)


_UNCLEAR = _always("is not valid", "See .env.example for its format.")
_WHOLE = _always("must be a whole number", "Write digits only, such as 20.")
_NUMBER = _always("is not a number", "Write a number.")
_TRUTH = _always("is neither true nor false", "Write true or false.")
_LIST = _always("is not a list", "Write a list: [...].")
_OBJECT = _always("is not an object", "Write an object: {...}.")

_WORDS: dict[str, _Words] = {
    "missing": _always("is missing", "Add it."),
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "bool_parsing": _TRUTH,
    "bool_type": _TRUTH,
    "string_type": _always("is not a string", "Write a string in quotes."),
    "tuple_type": _LIST,
    "list_type": _LIST,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "string_too_short": _always("is empty", "Give it a value, or remove it."),
    "string_too_long": lambda context: (
        "is too long",
        f"Write at most {context['max_length']} characters.",
    ),
    "literal_error": lambda context: (
        "is not one of the allowed values",
        f"Write {context['expected']}.",
    ),
    "greater_than": lambda context: (
        "is too small",
        f"Write a number greater than {context['gt']:g}.",
    ),
    "greater_than_equal": lambda context: (
        "is too small",
        f"Write a number of at least {context['ge']:g}.",
    ),
    "less_than_equal": lambda context: (
        "is too large",
        f"Write a number of at most {context['le']:g}.",
    ),
}
