"""The probe: what stands on the card of agents that work, lack something, or fail."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.acp import probe
from app.acp.card import Card, ProbeStep, write_card
from app.acp.launch import AgentLaunch
from app.acp.probe import STEPS, Probe, red_square
from app.acp.visits import Visits
from app.children.environment import agent_environment
from app.clock import SystemClock
from app.demo_agent import VERSION
from tests.unit.acp.helpers import DEMO, Counts, StillClock, scripted
from tests.unit.children.helpers import carriers

pytestmark = pytest.mark.anyio

COMMAND = (sys.executable, str(DEMO))


class Bench:
    """Probes of one agent, with everything they touch within reach."""

    def __init__(
        self, folder: Path, argv: tuple[str, ...] = COMMAND, faults: str = "1", **changes: Any
    ) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.markers: list[str] = []
        self._faults = faults
        launch = AgentLaunch(
            **{
                "name": "demo",
                "argv": argv,
                "home": folder / "home",
                "environment": self._environment,
                **changes,
            }
        )
        self.visits = Visits(launch, folder / "visit", Counts(), "test")

    def _environment(self, marker: str) -> Mapping[str, str]:
        self.markers.append(marker)
        own = {"AGENT_BRIDGE_DEMO_FAULTS": self._faults}
        base = {"PATH": "/usr/bin:/bin"}
        return agent_environment(base, home=self.folder / "home", own=own, marker=marker)

    async def probed(self, clock: SystemClock | StillClock | None = None) -> Card:
        card = await Probe(self.visits, clock or SystemClock(), self.told.append).run()
        assert [carriers(marker) for marker in self.markers] == [[] for _ in self.markers]
        assert {path.name for path in self.folder.iterdir()} <= {"home", "card.json"}
        return card


def verdicts(card: Card) -> dict[str, str]:
    return {step.name: step.verdict for step in card.steps}


def remark(card: Card, name: str) -> str:
    return next(step.remark for step in card.steps if step.name == name)


async def test_an_agent_that_can_everything_gets_a_full_card(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    card = await bench.probed()

    assert verdicts(card) == dict.fromkeys(STEPS, "works")
    assert (card.agent, card.command, card.version) == ("demo", COMMAND, VERSION)
    assert bench.told == list(STEPS)
    assert remark(card, "permission") == "it asks: Allow once, Allow always, Reject"
    assert remark(card, "load") == "it remembers"
    assert card.words == "11 of 11 work"


async def test_what_an_agent_does_not_offer_is_absent(tmp_path: Path) -> None:
    card = await Bench(tmp_path, faults="1,no-load").probed()

    assert verdicts(card) | {"load": "absent", "resume": "absent"} == verdicts(card)
    assert card.of("fails") == []


async def test_what_an_agent_offers_and_cannot_do_fails_in_its_own_words(tmp_path: Path) -> None:
    card = await Bench(tmp_path, faults="1,fail-load,fail-list,fail-close").probed()

    assert card.of("fails") == ["list", "close", "load"]
    assert "session/load failed, as it was told to" in remark(card, "load")
    assert card.words == "8 of 11 work, fails: list, close, load"


async def test_an_earlier_card_keeps_nobody_from_looking_again(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    write_card(path, Card("demo", COMMAND, VERSION, 0.0, (ProbeStep("resume", "fails", 0.0),)))

    card = await Bench(tmp_path, card=path).probed()

    assert verdicts(card)["resume"] == "works"


async def test_an_agent_that_runs_commands_unasked_fails(tmp_path: Path) -> None:
    card = await Bench(tmp_path, mode="free").probed()

    assert card.of("fails") == ["permission"]
    assert "without asking" in remark(card, "permission")


async def test_a_mode_that_is_set_and_not_offered_fails(tmp_path: Path) -> None:
    card = await Bench(tmp_path, mode="polite").probed()

    assert verdicts(card)["mode"] == "fails"
    assert "no mode 'polite'; offered: ask, free" in remark(card, "mode")


async def test_an_agent_that_cannot_be_started_has_a_card_all_the_same(tmp_path: Path) -> None:
    missing = await Bench(tmp_path, ("no-such-agent",), install="Install it.").probed()
    leaving = await Bench(tmp_path, faults="exit-at-start").probed()

    for card in (missing, leaving):
        assert verdicts(card) == {**dict.fromkeys(STEPS, "skipped"), "initialize": "fails"}
    assert "'no-such-agent' was not found" in remark(missing, "initialize")
    assert "leaves at once, as it was told to" in remark(leaving, "initialize")


async def test_an_agent_without_a_login_says_so_and_nothing_else_is_held_against_it(
    tmp_path: Path,
) -> None:
    body = """
def new(message):
    send(id=message["id"], error={"code": -32000, "message": "Authentication required"})
"""
    card = await Bench(tmp_path, scripted(body)).probed()

    assert card.of("fails") == ["new"]
    assert "agent-bridge agents login demo" in remark(card, "new")
    assert verdicts(card)["load"] == "skipped"


async def test_an_agent_without_a_model_fails_its_prompt_and_only_that(tmp_path: Path) -> None:
    body = """
def prompt(message):
    send(id=message["id"], error={"code": -32603, "message": "no API key\\nanywhere"})
"""
    card = await Bench(tmp_path, scripted(body)).probed()

    assert card.of("fails") == ["prompt"]
    assert "no API key anywhere (code -32603)" in remark(card, "prompt")
    assert verdicts(card)["load"] == verdicts(card)["image"] == "skipped"


async def test_an_agent_that_dies_on_an_image_is_held_to_that_alone(tmp_path: Path) -> None:
    body = """
told = []
def initialize(message):
    answer(message, protocolVersion=1, agentCapabilities={
        "promptCapabilities": {"image": True}, "sessionCapabilities": {"close": {}}})
def prompt(message):
    if any(block["type"] == "image" for block in message["params"]["prompt"]):
        os._exit(3)
    say("ready")
    answer(message, stopReason="end_turn")
"""
    card = await Bench(tmp_path, scripted(body)).probed()

    assert card.of("fails") == ["image"]
    assert "exit status 3" in remark(card, "image")
    assert verdicts(card)["close"] == "skipped"
    assert "it did not try to run anything" in remark(card, "permission")
    assert verdicts(card)["cancel"] == "skipped"


async def test_an_agent_that_comes_back_without_its_memory_fails(tmp_path: Path) -> None:
    body = """
def prompt(message):
    say("I know nothing")
    answer(message, stopReason="end_turn")
"""
    card = await Bench(tmp_path, scripted(body)).probed()

    assert card.of("fails") == ["load"]
    assert "without its memory" in remark(card, "load")


async def test_an_agent_that_comes_back_and_cannot_be_asked_is_not_held_to_it(
    tmp_path: Path,
) -> None:
    body = """
def load(message):
    globals()["prompt"] = lambda message: send(
        id=message["id"], error={"code": -32603, "message": "slow down"})
    answer(message)
def prompt(message):
    say("ready")
    answer(message, stopReason="end_turn")
"""
    card = await Bench(tmp_path, scripted(body)).probed()

    assert verdicts(card)["load"] == "skipped"
    assert "slow down" in remark(card, "load")


async def test_an_agent_that_never_answers_costs_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(list[str]):
        def append(self, step: str) -> None:
            if step == "prompt":
                monkeypatch.setattr(probe, "STEP_SECONDS", 0.1)

    bench = Bench(tmp_path, scripted("def prompt(message): pass\n"))
    bench.told = Impatient()

    card = await bench.probed()

    assert card.of("fails") == ["prompt"]
    assert "not done within 0.1 s" in remark(card, "prompt")


async def test_a_conversation_settles_before_it_is_brought_back_where_that_is_needed(
    tmp_path: Path,
) -> None:
    bench, clock = Bench(tmp_path, settle_seconds_before_load=61.0), StillClock()

    card = await bench.probed(clock)

    assert verdicts(card)["load"] == "works"
    assert clock.slept == [61.0, 61.0]
    assert "load, in 61 s: waiting for its record to settle" in bench.told


def test_the_picture_is_one() -> None:
    data = red_square()

    start = data.index(b"IDAT") + 4
    points = zlib.decompress(data[start : data.index(b"IEND") - 8])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert points[:7] == b"\0\xff\0\0\xff\0\0"
    assert len(points) == 64 * (1 + 3 * 64)
