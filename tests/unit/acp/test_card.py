"""The card of an agent: kept whole, read with care."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp.schema import (
    AgentCapabilities,
    PromptCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionResumeCapabilities,
)

from app.acp.card import Card, ProbeStep, Verdict, card_path, read_card, write_card
from app.acp.handshake import drop_failed

COMMAND = ("agent", "--acp")
STEPS = (ProbeStep("load", "fails", 1.5, "it died"), ProbeStep("resume", "absent", 0.0))
CARD = Card("claude", COMMAND, "1.0", 12.5, STEPS)
OFFERED = AgentCapabilities(
    load_session=True,
    prompt_capabilities=PromptCapabilities(image=True, audio=True),
    session_capabilities=SessionCapabilities(
        resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
    ),
)


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = card_path(tmp_path, "claude")

    write_card(path, Card("claude", COMMAND, "0.9", 1.0, ()))
    write_card(path, CARD)

    assert read_card(path) == CARD
    assert path == tmp_path / "agents" / "claude" / "card.json"
    assert CARD.failed("load")
    assert not CARD.failed("resume")


@pytest.mark.parametrize("text", ["", "7", "[]", "{}", '{"steps": 7}', '{"steps": [{"x": 1}]}'])
def test_a_card_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)

    assert read_card(path) is None
    assert read_card(tmp_path / "missing.json") is None


def test_a_card_speaks_of_one_version_of_one_command() -> None:
    assert CARD.is_about(COMMAND)
    assert CARD.is_about(COMMAND, "1.0")
    assert not CARD.is_about(COMMAND, "1.1")
    assert not CARD.is_about(("agent",), "1.0")


@pytest.mark.parametrize(
    ("step", "verdict", "left"),
    [
        ("load", "fails", (False, True, True, True)),
        ("resume", "fails", (True, False, True, True)),
        ("close", "fails", (True, True, False, True)),
        ("image", "fails", (True, True, True, False)),
        ("load", "skipped", (True, True, True, True)),
        ("prompt", "fails", (True, True, True, True)),
    ],
)
def test_what_failed_is_taken_back(
    step: str, verdict: Verdict, left: tuple[bool, bool, bool, bool]
) -> None:
    card = Card("claude", COMMAND, "1.0", 0.0, (ProbeStep(step, verdict, 0.0),))

    usable = drop_failed(OFFERED, card)

    sessions, prompts = usable.session_capabilities, usable.prompt_capabilities
    assert sessions is not None
    assert prompts is not None
    assert prompts.audio
    assert left == (
        usable.load_session,
        sessions.resume is not None,
        sessions.close is not None,
        prompts.image,
    )


def test_without_a_card_all_that_is_offered_is_used() -> None:
    assert drop_failed(OFFERED, None) is OFFERED
