"""Formats amounts for people: money, durations, counts; pure."""

from __future__ import annotations

MINUTE = 60
HOUR = 60 * MINUTE


def money(cost: float | None, currency: str | None, *, estimated: bool = False) -> str:
    """Format a cost; nothing for zero, less than a cent as such, an estimate with a tilde."""
    if not cost:
        return ""
    amount, less = (f"{cost:.2f}", "~" * estimated) if cost >= 0.01 else ("0.01", "<")
    return f"{less}${amount}" if currency in {None, "", "USD"} else f"{less}{amount} {currency}"


def duration(seconds: float) -> str:
    """Format a duration."""
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    minutes, rest = divmod(whole, MINUTE)
    if whole < HOUR:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    return f"{minutes // 60}h {minutes % 60}m"


def count(number: int, one: str, several: str = "") -> str:
    """Format a number of things."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"
