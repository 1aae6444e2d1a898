"""Prices of models: data with a date, changed by the operator, and estimates from them."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest

from app.agents.catalog import KNOWN, PriceList, read_prices
from app.core.turns.limits import complete
from app.model.updates import Tokens, UsageUpdate

MILLION = Tokens(1_000_000, 1_000_000)


def test_the_known_prices_have_a_date() -> None:
    known = PriceList.model_validate(tomllib.loads(KNOWN.read_text()))

    assert date.fromisoformat(known.as_of) > date(2025, 1, 1)
    assert known.models


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("claude-sonnet-4-5-20250929", 18.0),
        ("claude-opus-5", 30.0),
        ("claude-opus-5-5", 24.0),
        ("openai/GPT-6-luna", 0.6),
        ("gpt-6-sol/high", 12.0),
        ("default", None),
        ("", None),
    ],
)
def test_a_model_is_known_by_the_longest_name_that_it_contains(
    tmp_path: Path, model: str, cost: float | None
) -> None:
    assert read_prices(tmp_path).estimate(model, MILLION) == cost


def test_cached_tokens_have_their_own_price(tmp_path: Path) -> None:
    cached = Tokens(0, 0, cache_read=1_000_000, cache_write=1_000_000)

    assert read_prices(tmp_path).estimate("claude-sonnet-4-5", cached) == pytest.approx(4.05)
    assert read_prices(tmp_path).estimate("gpt-6-sol", cached) == pytest.approx(2.7)


def test_the_operator_changes_and_adds_prices(tmp_path: Path) -> None:
    own = ('"gpt-6-sol" = { input = 1.0, output = 1.0 }', '"Ours" = { input = 2.0, output = 2.0 }')
    (tmp_path / "prices.toml").write_text("\n".join(("[models]", *own)))
    prices = read_prices(tmp_path)

    assert prices.estimate("gpt-6-sol", MILLION) == 2.0
    assert prices.estimate("ours-large", MILLION) == 4.0
    assert prices.estimate("claude-sonnet-4-5", MILLION) == 18.0


@pytest.mark.parametrize("text", ["not toml", '[models]\n"gpt-6-sol" = { input = -1, output = 1 }'])
def test_a_broken_file_changes_nothing_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    (tmp_path / "prices.toml").write_text(text)

    assert read_prices(tmp_path).estimate("gpt-6-sol", MILLION) == 12.0
    assert f"{tmp_path / 'prices.toml'} is not used" in caplog.text


def test_an_estimate_is_added_only_where_the_agent_reports_no_cost(tmp_path: Path) -> None:
    estimate, tokens = read_prices(tmp_path).estimate, Tokens(1_000_000, 0)
    usage = UsageUpdate(tokens=tokens)

    added = complete(usage, has_cost=False, model="gpt-6-sol", estimate=estimate)

    assert added == UsageUpdate(cost=2.0, currency="USD", tokens=tokens, estimated=True)
    assert complete(usage, has_cost=True, model="gpt-6-sol", estimate=estimate) is None
    assert complete(usage, has_cost=False, model="unknown", estimate=estimate) is None
    own = UsageUpdate(used=5, cost=2.0, tokens=tokens)
    assert complete(own, has_cost=False, model="gpt-6-sol", estimate=estimate) is own
