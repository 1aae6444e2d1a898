"""People and agents use an agent that can do more than they may, through every way to reach one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("agent ops read {key}", "not connected to slack"),
        ("agent ops", "not connected to slack"),
        ("panel claude ops: read {key}", "agents_allow"),
        ("panel ops claude: read {key}", "agents_allow"),
        ("race claude ops: read {key}", "agents_allow"),
        ("@ops read {key}\nsay done", "done"),
        (tool("agents_message", to="ops", text="read {key}"), ALLOW),
        (tool("agents_spawn", agent="ops", task="read {key}"), ALLOW),
        (tool("agents_list"), '"agents": []'),
    ],
    ids=lambda value: value.partition(":")[0][:30],
)
def test_people_of_slack_reach_no_agent_that_is_on_the_page_alone(
    world: SlackWorld, key: Path, words: str, told: str
) -> None:
    said = words.replace("{key}", str(key))

    thread = world.say(f"{world.at('claude')} {said}")

    world.wait_told(thread, told)
    assert_untouched(world)


@pytest.mark.parametrize("words", ["!review ops", tool("review", agent="ops")])
def test_people_of_slack_have_no_work_reviewed_by_it(world: SlackWorld, words: str) -> None:
    thread = world.say(f"{world.at('claude')} write new.txt {words[:6]}")
    world.wait_answer(thread, "new.txt")
    world.settle()

    world.say(f"{world.at('claude')} {words}", thread=thread)

    world.wait_told(thread, ALLOW)
    assert_untouched(world)


def test_people_of_slack_reach_it_by_no_schedule(world: SlackWorld, key: Path) -> None:
    line = tool("agents_message", to="ops", text=f"read {key}")
    thread = world.say(f'{world.at("claude")} schedule "0 9 * * *" {line}')
    world.wait_told(thread, "To end it")
    [(number,)] = world.bridge.rows("select max(id) from schedule")

    world.say(f"{world.at('claude')} schedule run {number}", thread=thread)

    world.wait_told(thread, ALLOW)
    assert_untouched(world)


def test_no_button_gives_a_message_to_it(world: SlackWorld) -> None:
    thread = world.say(f"{world.at('claude')} limit 3600")

    world.wait_button(thread, "Stop")

    [(options,)] = world.bridge.rows("select options from ask where state = 'open'")
    assert "ops" not in options
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
