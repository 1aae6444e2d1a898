"""Agents that send as much as they can: everyone else is served meanwhile."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attacks.test_poison import asks, spread
from tests.support import postgres
from tests.support.bridge import BridgeProcess
from tests.support.github import GithubWorld
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.plays import player, put, text
from tests.support.slack import SlackWorld
from tests.support.variants import quick

KEY = "sk-7Qd2mXw9RtLk4BzVn8YpHc3F"
WORDS = {
    "encoded": base64.b64encode(KEY[:8].encode()).decode().rstrip("="),
    "nearly": KEY[3:14],
    "piece": f"{KEY[3:15]}_",
}
"""What is of the key, too little of it, or just enough: the slowest texts to search."""
SOON = 1.0
"""Seconds in which others are answered: Slack gives up after three."""
FRAME = 7_900_000
ROW = 64 * 1024


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with an honest agent, and one that has a key and sends anything."""
    folder = tmp_path_factory.mktemp("floods")
    plays = folder / "plays"
    for name, word in WORDS.items():
        put(plays, name, [text(f"$FILL {word} {FRAME // len(word)}")] * 2)
    word = WORDS["encoded"]
    every = spread(f"$FILL {word} {FRAME // len(word) // 5}")
    put(plays, "fields", every)
    put(plays, "question", [asks(f"$FILL {word} {FRAME // len(word) // 6}")])
    put(plays, "border", [text("." * (ROW - cut) + KEY + "." * ROW) for cut in (1, 10, 20)])
    agents = {"demo": player(plays), "honest": demo()}
    agents["demo"]["env"]["FLOOD_API_KEY"] = KEY
    with Platform() as platform, Observed(folder, platform, agents=agents) as bridge:
        bridge.ask("beside", "say ready", "honest")
        bridge.ask("flooded", "say ready")
        yield bridge


@contextmanager
def watched(bridge: BridgeProcess) -> Iterator[list[float]]:
    """Ask all the time whether the bridge is alive; give how long the answers took."""
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            began = time.monotonic()
            bridge.http.get("/healthz")
            took.append(time.monotonic() - began)

    watch = threading.Thread(target=ask)
    watch.start()
    try:
        yield took
    finally:
        over.set()
        watch.join()


def assert_others_are_answered(bridge: Observed, took: list[float]) -> None:
    """Talk to the honest agent meanwhile, several times."""
    for count in range(3):
        began = time.monotonic()
        assert bridge.ask("beside", f"say {count}", "honest")["text"] == str(count)
        took.append(time.monotonic() - began)


@pytest.mark.long
@pytest.mark.parametrize("word", quick(1, list(WORDS)))
def test_everyone_is_answered_while_an_agent_floods_the_bridge(bridge: Observed, word: str) -> None:
    number = bridge.begin("flooded", word)
    with watched(bridge) as took:
        assert_others_are_answered(bridge, took)
        end = bridge.end("flooded", number)

    assert end["state"] == "done"
    assert max(took) < SOON
    kept = "select sum(length(text)) from transcript where kind = 'text' and session = ?"
    ((characters,),) = bridge.rows(kept, bridge.session("flooded"))
    assert characters > FRAME  # nothing is lost; only a known secret takes less room


def test_everyone_is_answered_while_an_agent_fills_every_field(bridge: Observed) -> None:
    number = bridge.begin("flooded", "fields")
    with watched(bridge) as took:
        assert_others_are_answered(bridge, took)
        end = bridge.end("flooded", number)

    assert end["state"] == "done"
    assert max(took) < SOON
    assert bridge.ask("flooded", "say Hello")["text"] == "Hello"


def test_everyone_is_answered_while_an_agent_asks_more_than_can_be_shown(
    bridge: Observed,
) -> None:
    number = bridge.begin("flooded", "question")
    with watched(bridge) as took:
        end = bridge.end("flooded", number)

    assert end["state"] == "done"
    assert max(took) < SOON


def test_a_secret_across_the_border_of_two_pieces_is_found(bridge: Observed) -> None:
    bridge.ask("border", "border")

    session = bridge.session("border")
    query = "select text from transcript where kind = 'text' and session = ? order by id"
    kept = bridge.rows(query, session)
    told = "".join(row for (row,) in kept)
    assert told.count("[secret]") == 3
    # Up to three letters may have left before the next one shows what they begin.
    assert set(told.replace("[secret]", "")) <= set(f".{KEY[:3]}")
    store = b"".join(postgres.read_store(bridge.data_dir).values())
    assert KEY.encode() not in store


HARD = {
    "brackets": "[" * 390_000,
    "backticks": "[a](b)" + "".join(f"{'`' * size}a" for size in range(1, 880)),
}
"""Answers in which halves of links, or of code, are looked for again and again."""


@pytest.mark.long
@pytest.mark.parametrize("answer", HARD)
def test_everyone_is_answered_while_github_is_given_an_answer_that_is_hard_to_read(
    tmp_path: Path, answer: str
) -> None:
    put(tmp_path / "plays", answer, [text(HARD[answer])])
    world = GithubWorld(tmp_path)
    world.bridge.agents = {"claude": player(tmp_path / "plays")}
    with world, watched(world.bridge) as took:
        issue = world.issue(f"@claude-bridge {answer}")
        world.wait_for(issue, HARD[answer][-50:])

    assert max(took) < SOON


@pytest.mark.long
@pytest.mark.parametrize("answer", HARD)
def test_everyone_is_answered_while_slack_is_given_an_answer_that_is_hard_to_read(
    tmp_path: Path, answer: str
) -> None:
    put(tmp_path / "plays", answer, [text(HARD[answer])])
    entries = {"claude": player(tmp_path / "plays")}
    with SlackWorld(tmp_path, entries=entries) as world, watched(world.bridge) as took:
        world.wait_answer(world.say(f"{world.at('claude')} {answer}"), HARD[answer][-50:])

    assert max(took) < SOON
