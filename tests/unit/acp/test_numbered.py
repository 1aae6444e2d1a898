"""Lines over connections that are cut: each arrives once and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.acp.numbered import CONFIRM_LINES, NumberedLines, read_control

STEPS = st.lists(st.sampled_from(["write", "deliver", "cut"]), max_size=60)


@given(STEPS)
def test_cuts_lose_and_double_nothing(steps: list[str]) -> None:
    here, there = NumberedLines(), NumberedLines()
    wire: list[bytes] = []
    written: list[bytes] = []
    arrived: list[bytes] = []

    def deliver() -> None:
        line = there.take(wire.pop(0))
        arrived.extend([] if line is None else [line])

    for step in steps:
        if step == "write":
            written.append(b"%d words" % len(written))
            wire.append(here.number(written[-1]))
        elif step == "deliver" and wire:
            deliver()
        elif step == "cut":
            wire[:] = here.missing(there.received)
    wire[:] = here.missing(there.received)
    while wire:
        deliver()

    assert arrived == written
    assert here.missing(there.received) == []
    assert here.kept_bytes == 0


def test_what_is_confirmed_is_kept_no_longer() -> None:
    here, there = NumberedLines(), NumberedLines()
    for _ in range(CONFIRM_LINES - 1):
        there.take(here.number(b"x" * 100))
    assert there.confirm() is None

    there.take(here.number(b"the last"))
    confirmation = there.confirm()

    assert confirmation is not None
    here.drop(read_control(confirmation)["received"])
    assert here.kept_bytes == 0
    assert there.confirm() is None


def test_a_line_after_a_gap_is_refused() -> None:
    here, there = NumberedLines(), NumberedLines()
    here.number(b"lost")

    with pytest.raises(ValueError, match="missing"):
        there.take(here.number(b"next"))


@pytest.mark.parametrize("text", ["[]", "7", "{", ""])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own words, or ours
        read_control(text)
