"""The audit of dependencies: what is vulnerable fails, what could not be looked up is said."""

from __future__ import annotations

from typing import Any

from tests.support.audit import LOCKS, ROOT, report


def test_a_vulnerable_dependency_fails_and_is_named_with_its_remedy() -> None:
    bug = {"id": "PYSEC-2026-1", "fix_versions": ["1.2"]}

    lines, is_vulnerable = report([{"name": "starlette", "version": "1.1", "vulns": [bug]}])

    assert is_vulnerable
    assert lines[0] == "starlette 1.1: PYSEC-2026-1, mended in 1.2"


def test_an_audit_that_could_look_up_nothing_fails() -> None:
    lines, failed = report([{"name": "requirements.lock", "skip_reason": "no answer"}])

    assert failed
    assert lines[-1] == "audit: failed, run it where the advisories can be reached"


def test_an_audit_that_could_not_look_up_one_of_the_lock_files_fails() -> None:
    unseen = {"name": "requirements-image.lock", "skip_reason": "no answer"}

    lines, failed = report([{"name": "starlette", "version": "1.1", "vulns": []}, unseen])

    assert failed
    assert lines[-1] == "audit: failed, run it where the advisories can be reached"


def test_the_lock_file_of_the_image_is_audited() -> None:
    assert {each.name for each in ROOT.glob("requirements*.lock")} == set(LOCKS)


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
