"""The emoji of an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import ConfigurationError
from tests.unit.test_config import agent

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


@pytest.mark.parametrize("emoji", ["🦊", "⚙️", "👍🏽", "🇫🇷", "🧑🏽‍💻", FAMILY, "\U0001faef", "🏴‍☠️"])
def test_one_emoji_is_taken(tmp_path: Path, emoji: str) -> None:
    assert agent(tmp_path, emoji=emoji).emoji == emoji


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        ":fox:",
        "🦊🦊",
        "🦊 ",
        "é",
        "狐",
        "\u202e",
        "🦊\u202e",
        "\u200d",
        "🦊\u200d",
        "🦊" * 9,
        7,
    ],
)
def test_anything_else_is_refused_with_an_example(tmp_path: Path, text: object) -> None:
    with pytest.raises(ConfigurationError) as refused:
        agent(tmp_path, emoji=text)

    assert "agent 'mine': emoji is not" in str(refused.value)


def test_the_refusal_shows_an_emoji(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'is not one emoji\. Write one, such as "🦊"'):
        agent(tmp_path, emoji="fox")
