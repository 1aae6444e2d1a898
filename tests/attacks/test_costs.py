"""Agents that lie about what they cost: the budgets of others stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.plays import player, put
from tests.support.variants import quick

CLAIMS: dict[str, list[Any]] = {
    "refund": [-1000],
    "fortune": [1e9],
    "sawtooth": [1e9, 0, 1e9, 0.0, 1e9],
    "nothing": [float("nan"), float("inf"), -float("inf"), 10**400, "5", True, None],
}


def usage(amount: Any) -> dict[str, Any]:
    cost = {"amount": amount, "currency": "USD"}
    return {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}


@pytest.fixture
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with a budget for the day, a liar and an honest agent that costs money."""
    folder = tmp_path_factory.mktemp("costs")
    for name, amounts in CLAIMS.items():
        put(folder / "plays", name, [usage(amount) for amount in amounts])
    put(folder / "plays", "honestly", [usage(6.0)])
    agents = {"demo": demo(), "liar": player(folder / "plays"), "other": player(folder / "plays")}
    settings = {"BUDGET_DAY_USD": "5"}
    with (
        Platform() as platform,
        Observed(folder, platform, agents=agents, settings=settings) as bridge,
    ):
        yield bridge


def spent(bridge: Observed) -> dict[tuple[str, str], float]:
    rows = bridge.rows("select share, name, usd from spending")
    return {(share, name): usd for share, name, usd in rows}


@pytest.mark.parametrize("claim", quick(2, list(CLAIMS)))
def test_a_false_claim_neither_frees_nor_uses_up_what_others_may_spend(
    bridge: Observed, claim: str
) -> None:
    """A cost below nothing, beyond all measure, or none at all."""
    bridge.ask("lies", claim, "liar")

    assert bridge.ask("beside", "say Hello")["text"] == "Hello"
    assert all(0 <= usd <= 50 for usd in spent(bridge).values())
    bridge.ask("beside", "honestly", "other")
    assert spent(bridge)["day", ""] == 6.0
    bridge.begin("beside", "say no more")
    bridge.open_asks(place="beside")


def test_a_believable_claim_uses_up_little_more_than_the_agents_own_share(tmp_path: Path) -> None:
    """A lie of 49 dollars where an agent may spend 2 and all together 5."""
    put(tmp_path / "plays", "believable", [usage(20.0), usage(49.0)])
    agents = {"demo": demo(), "liar": player(tmp_path / "plays")}
    settings = {"BUDGET_DAY_USD": "5", "BUDGET_AGENT_USD": "2"}
    with (
        Platform() as platform,
        Observed(tmp_path, platform, agents=agents, settings=settings) as bridge,
    ):
        bridge.ask("lies", "believable", "liar")

        assert bridge.ask("beside", "say Hello")["text"] == "Hello"
        assert spent(bridge)["day", ""] == 4.0
