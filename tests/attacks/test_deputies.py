"""People and agents use an agent that can do more than they may, through every way to reach one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from app.model.asks import HAND_OVER
from tests.support.bridge import demo as plain_demo
from tests.support.git_server import GitServer
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.slack import SlackWorld

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
)
SECRET = "the-operators-private-key"
BOXED: dict[str, Any] = {"sandbox": "bubblewrap", "mode": "free"}
OPEN: dict[str, Any] = {"sandbox": "none", "mode": "free"}
ALLOW = "`agents_allow` of"
Way = Callable[[SlackWorld, Path], str]
"""Tries to reach the agent that is on the page alone; returns the thread."""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file that only an agent without isolation can read."""
    file = tmp_path_factory.mktemp("operator") / "key"
    file.write_text(SECRET)
    return file


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackWorld]:
    """Open a workspace with an isolated agent; one without isolation is on the page alone."""
    with GitServer(tmp_path_factory.mktemp("server")) as server:
        server.create("acme/app", {"a.txt": "one"})
        made = SlackWorld(
            tmp_path_factory.mktemp("world"),
            elsewhere=("ops",),
            page=True,
            settings={"GITHUB_GIT_URL": server.url, "GITHUB_REPO": "acme/app"},
            entries={
                "claude": plain_demo(**BOXED, ship="push"),
                "ops": plain_demo(**OPEN, ship="none", visible=False),
            },
        )
        with made as running:
            yield running


def tool(name: str, **arguments: Any) -> str:
    """Write the line with which the demo agent calls a tool."""
    return f"tool {name} {json.dumps(arguments)}"


def assert_untouched(world: SlackWorld) -> None:
    """Check that the agent without isolation never worked, and that its file is shown nowhere."""
    world.settle()
    assert world.bridge.rows("select count(*) from session where agent = 'ops'") == [(0,)]
    shown = world.bridge.rows("select count(*) from transcript where text like ?", f"%{SECRET}%")
    assert shown == [(0,)]


def by_words(words: str) -> Way:
    """Say something to the agent that is on Slack; it may be a command."""

    def go(world: SlackWorld, key: Path) -> str:
        return world.say(f"{world.at('claude')} {words.replace('{key}', str(key))}")

    return go


def by_review(words: str) -> Way:
    """Have work reviewed that is there."""

    def go(world: SlackWorld, _key: Path) -> str:
        thread = world.say(f"{world.at('claude')} write new.txt {words[:6]}")
        world.wait_answer(thread, "new.txt")
        world.settle()
        world.say(f"{world.at('claude')} {words}", thread=thread)
        return thread

    return go


def by_schedule(words: str) -> Way:
    """Have something said later, and run that at once."""

    def go(world: SlackWorld, key: Path) -> str:
        said = words.replace("{key}", str(key))
        thread = world.say(f'{world.at("claude")} schedule "0 9 * * *" {said}')
        world.wait_told(thread, "To end it")
        [(number,)] = world.bridge.rows("select max(id) from schedule")
        world.say(f"{world.at('claude')} schedule run {number}", thread=thread)
        return thread

    return go


WAYS: dict[str, tuple[Way, str]] = {
    "mention": (by_words("@ops read {key}\nsay done"), "done"),
    "hand-over": (by_words("agent ops"), "not connected to slack"),
    "hand-over with words": (by_words("agent ops read {key}"), "not connected to slack"),
    "panel": (by_words("panel claude ops: read {key}"), ALLOW),
    "panel that it begins": (by_words("panel ops claude: read {key}"), ALLOW),
    "race": (by_words("race claude ops: read {key}"), ALLOW),
    "review": (by_review("!review ops"), ALLOW),
    "review by an agent": (by_review(tool("review", agent="ops")), ALLOW),
    "delegation": (by_words(tool("agents_message", to="ops", text="read {key}")), ALLOW),
    "new session": (by_words(tool("agents_spawn", agent="ops", task="read {key}")), ALLOW),
    "list of agents": (by_words(tool("agents_list")), '"agents": []'),
    "schedule": (by_schedule(tool("agents_message", to="ops", text="read {key}")), ALLOW),
    "schedule of a hand-over": (by_schedule("agent ops read {key}"), "You said: agent ops"),
    "schedule of a panel": (by_schedule("panel claude ops: read {key}"), "You said: panel"),
}


@pytest.mark.parametrize("way", WAYS)
def test_people_of_slack_reach_no_agent_that_is_on_the_page_alone(
    world: SlackWorld, key: Path, way: str
) -> None:
    go, told = WAYS[way]

    thread = go(world, key)

    world.wait_told(thread, told)
    assert_untouched(world)


def test_neither_a_button_nor_the_page_gives_a_thread_of_slack_to_it(world: SlackWorld) -> None:
    thread = world.say(f"{world.at('claude')} limit 3600")
    world.wait_button(thread, "Stop")
    [(ask, options)] = world.bridge.rows("select id, options from ask where state = 'open'")
    [(session,)] = world.bridge.rows("select max(id) from session")

    given = world.bridge.http.post(f"/api/v1/sessions/{session}/handover", json={"agent": "ops"})
    forged = {"answer": f"{HAND_OVER}ops"}
    pressed = world.bridge.http.post(f"/api/v1/asks/{ask}/answer", json=forged)

    assert "ops" not in options
    assert (given.status_code, "on slack" in given.text) == (409, True)
    assert pressed.status_code in {404, 409, 422}
    world.say(f"{world.at('claude')} stop all", thread=thread)
    assert_untouched(world)


TEAM: dict[str, dict[str, Any]] = {
    "boxed": demo(**BOXED),
    "wild": demo(**BOXED, agents_allow=["*"]),
    "chosen": demo(**BOXED, agents_allow=["o?s"]),
    "denied": demo(**BOXED, agents_allow=["ops"], agents_deny=["o*"]),
    "offline": demo(**BOXED, network="none"),
    "listed": demo(**BOXED, network="restricted", network_hosts=["*.a.example"]),
    "within": demo(**BOXED, network="restricted", network_hosts=["x.a.example"]),
    "beyond": demo(**BOXED, network="restricted", network_hosts=["b.example"]),
    "reader": demo(sandbox="bubblewrap", permissions="read-only"),
    "careful": demo(sandbox="bubblewrap"),
    "trusted": demo(sandbox="bubblewrap", permissions="trusted"),
    "ops": demo(**OPEN, visible=False),
}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with agents that differ in what each can reach and do."""
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("team")
        settings = {"DELEGATIONS_PER_HOUR": "100"}
        with Observed(folder, platform, agents=TEAM, settings=settings) as bridge:
            yield bridge


@pytest.mark.parametrize(
    ("asking", "asked", "why"),
    [
        ("boxed", "ops", "it is not isolated, and you are"),
        ("wild", "ops", "it is not isolated, and you are"),
        ("denied", "ops", "There is no agent"),
        ("offline", "boxed", "it can connect to more than you"),
        ("offline", "listed", "it can connect to more than you"),
        ("listed", "boxed", "it can connect to more than you"),
        ("listed", "beyond", "it can connect to more than you"),
        ("within", "listed", "it can connect to more than you"),
        ("reader", "careful", "it may do more without a question"),
        ("careful", "trusted", "it may do more without a question"),
        ("trusted", "boxed", "it may do more without a question"),
    ],
)
def test_an_agent_gets_through_another_nothing_that_it_has_not(
    team: Observed, key: Path, asking: str, asked: str, why: str
) -> None:
    begun = team.rows("select count(*) from delegation")
    lines = (
        tool("agents_list"),
        tool("agents_message", to=asked, text=f"read {key}"),
        tool("agents_spawn", agent=asked, task=f"read {key}"),
    )

    said = team.ask(f"{asking}-{asked}", "\n".join(lines), asking)["text"]

    assert said.count(why) == 2
    assert f'"name": "{asked}"' not in said
    assert SECRET not in said
    assert team.rows("select count(*) from delegation") == begun
    [prompt] = team.rows("select prompt from turn order by id desc limit 1")[0]
    assert f"- {asked}" not in prompt


@pytest.mark.parametrize(
    ("asking", "asked"),
    [
        ("chosen", "ops"),
        ("boxed", "offline"),
        ("listed", "within"),
        ("careful", "reader"),
        ("trusted", "careful"),
        ("ops", "boxed"),
    ],
)
def test_an_agent_asks_one_that_can_do_less_or_that_the_operator_named(
    team: Observed, asking: str, asked: str
) -> None:
    line = tool("agents_message", to=asked, text="say I am here")

    said = team.ask(f"{asking}-{asked}", line, asking)["text"]

    assert "I am here" in said
