"""Splits the variants of one test: the first run in `make test`, the rest in `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def quick(count: int, cases: Mapping[str, Any] | Iterable[Any]) -> list[ParameterSet]:
    """Return the cases for `parametrize`, those after the first `count` marked as slow."""
    named = cases.items() if isinstance(cases, Mapping) else ((None, case) for case in cases)
    return [
        _parameters(case, name, slow=number >= count) for number, (name, case) in enumerate(named)
    ]


def _parameters(case: Any, name: str | None, *, slow: bool) -> ParameterSet:
    known = case if isinstance(case, ParameterSet) else None
    values = known.values if known else case if isinstance(case, tuple) else (case,)
    marks = [*(known.marks if known else ()), *([pytest.mark.slow] if slow else [])]
    return pytest.param(*values, id=name or (known.id if known else None), marks=marks)
