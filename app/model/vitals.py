"""Holds what is measured of a running bridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One readiness check."""

    name: str
    ok: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Vital:
    """One measured value."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


ROLES = ("all", "front", "worker")


def measure_members(roles: Sequence[str], *, silent: float, is_leader: bool) -> Sequence[Vital]:
    """Count the bridges that share a database, by their roles."""
    return [
        *(Vital("members", roles.count(role), (("role", role),)) for role in ROLES),
        Vital("member_silent_seconds", silent),
        Vital("desk", float(is_leader)),
    ]
