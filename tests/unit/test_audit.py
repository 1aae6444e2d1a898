"""The audit of dependencies: what is vulnerable fails, what could not be looked up is said."""

from __future__ import annotations

from typing import Any

from tests.support.audit import report


def test_a_vulnerable_dependency_fails_and_is_named_with_its_remedy() -> None:
    bug = {"id": "PYSEC-2026-1", "fix_versions": ["1.2"]}

    lines, is_vulnerable = report([{"name": "starlette", "version": "1.1", "vulns": [bug]}])

    assert is_vulnerable
    assert lines[0] == "starlette 1.1: PYSEC-2026-1, mended in 1.2"


def test_what_could_not_be_looked_up_is_said_and_counts_as_nothing_found() -> None:
    found: list[dict[str, Any]] = [
        {"name": "starlette", "version": "1.1", "vulns": []},
        {"name": "uvicorn", "skip_reason": "not found"},
    ]

    assert report(found) == (
        [
            "audit: 1 dependencies looked up, 0 advisories",
            "audit: 1 could not be looked up from here",
        ],
        False,
    )
