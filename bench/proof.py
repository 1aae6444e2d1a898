"""Checks that a measurement did its work; one that cannot show it reports no figure."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.machine import LOOK_SECONDS

PROOF_SECONDS = 60.0
"""How long a busy machine may take to finish what was acknowledged."""


class Unproven(Exception):
    """The work that a figure would be about was not done."""


def prove(done: bool, why: str) -> None:
    """Go on only if the work was done.

    Raises:
        Unproven: it was not, for this reason.
    """
    if not done:
        raise Unproven(why)


def prove_equal(found: object, wanted: object, what: str) -> None:
    """Go on only if there is as much as there should be.

    Raises:
        Unproven: there is not.
    """
    prove(found == wanted, f"{what}: {found}, not {wanted}")


def wait_for(count: Callable[[], int], wanted: int, what: str) -> None:
    """Wait until as many things are there as were asked for, and no more.

    Raises:
        Unproven: they do not come, or there are too many.
    """
    deadline = time.monotonic() + PROOF_SECONDS
    while (found := count()) < wanted and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    prove_equal(found, wanted, what)
