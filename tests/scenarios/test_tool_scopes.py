"""The operator's lists decide which tools and agents an agent has, however it reaches them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.observe import demo
from tests.support.platform import Platform
from tests.support.scoping import ALL, CASES
from tests.support.tools import Tooled
from tests.support.variants import quick

pytestmark = pytest.mark.one_database

FORMS: dict[str, dict[str, Any]] = {
    "http": demo(),
    "stdio": demo("no-http"),
    "skills": demo(tool_exposure="skills"),
}
WORDS = 'tools\ntool agents_list {}\ntool echo_loud {"text": "hear me"}'
NAMED = re.compile(r"^(\w+): ", re.MULTILINE)
COLLEAGUE = re.compile(r"^- (\w+)", re.MULTILINE)
ASKS = {"agents_message", "agents_spawn"}
LISTED = re.compile(r'"name": "([\w-]+)"')


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tooled]:
    """Run an agent for each case and form, next to others that it may see or not."""
    agents = {
        f"{case}-{form}": {**entry, **CASES[case].entry, "visible": False}
        for case in CASES
        for form, entry in FORMS.items()
    }
    others = {"friend": demo(), "foe": demo(), "hidden": demo(visible=False)}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("scopes")
        with Tooled(folder, platform, agents={**agents, **others}) as bridge:
            yield bridge


@pytest.mark.parametrize("case", CASES)
def test_an_agent_over_http_has_the_tools_and_agents_of_its_lists(
    bridge: Tooled, case: str
) -> None:
    assert_scope(bridge, case, "http")


@pytest.mark.parametrize("form", ["stdio", "skills"])
@pytest.mark.parametrize("case", quick(3, ["both", "empty", "sees", *CASES]))
def test_an_agent_has_them_in_every_form(bridge: Tooled, case: str, form: str) -> None:
    assert_scope(bridge, case, form)


def assert_scope(bridge: Tooled, case: str, form: str) -> None:
    """Let an agent list its tools and the others, and call one tool that it may have or not."""
    expected, agent = CASES[case], f"{case}-{form}"

    said = bridge.ask(agent, WORDS, agent)["text"]

    assert set(NAMED.findall(said)) & ALL == expected.tools
    agents = expected.agents if "agents_list" in expected.tools else set()
    assert set(LISTED.findall(said)) == agents
    assert ('"text": "hear me"' in said) == ("echo_loud" in expected.tools)
    assert_told(bridge, agent, expected.agents, ASKS & set(NAMED.findall(said)))


def assert_told(bridge: Tooled, agent: str, others: set[str], asks: set[str]) -> None:
    """Check that an agent is told of the others that it can ask, with a tool that it has."""
    of = "select prompt from turn join session on session.id = turn.session where agent = ?"
    [prompt] = bridge.rows(f"{of} order by turn.id limit 1", agent)[0]
    part = prompt.partition("# Your colleagues")[2].partition("</instructions>")[0]

    assert set(COLLEAGUE.findall(part)) == (others if asks else set())
    assert bool(part) == bool(others and asks)
    assert set(re.findall("agents_[a-z]+", part)) <= asks
    assert ("agent-bridge-tool" in part) == (bool(part) and agent.endswith("-skills"))
