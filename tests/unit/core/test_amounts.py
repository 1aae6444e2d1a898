"""Amounts as people read them."""

from __future__ import annotations

import pytest

from app.model.text import count, duration, money


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0s"), (59, "59s"), (60, "1m"), (72, "1m 12s"), (7300, "2h 1m")]
)
def test_durations_are_short(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("cost", "currency", "words"),
    [
        (0.084, "USD", "$0.08"),
        (0.001, None, "<$0.01"),
        (2, "EUR", "2.00 EUR"),
        (None, None, ""),
        (0.0, "USD", ""),
    ],
)
def test_money_is_plain(cost: float | None, currency: str | None, words: str) -> None:
    assert money(cost, currency) == words


def test_an_estimate_has_a_tilde() -> None:
    assert money(0.12, "USD", estimated=True) == "~$0.12"
    assert money(0.001, "USD", estimated=True) == "<$0.01"
    assert money(None, None, estimated=True) == ""


def test_counts_name_what_they_count() -> None:
    assert [count(1, "file"), count(2, "file")] == ["1 file", "2 files"]
