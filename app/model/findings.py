"""Findings of `doctor`: each check gives verdict, reason and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    verdict: Verdict
    what: str
    reason: str
    remedy: str = ""


def ok(what: str, reason: str) -> Finding:
    """Say that something is as it should be."""
    return Finding(Verdict.OK, what, reason)


def warning(what: str, reason: str, remedy: str) -> Finding:
    """Say that something could be better."""
    return Finding(Verdict.WARNING, what, reason, remedy)


def problem(what: str, reason: str, remedy: str) -> Finding:
    """Say that something will not work."""
    return Finding(Verdict.PROBLEM, what, reason, remedy)
