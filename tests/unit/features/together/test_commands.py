"""The commands that have several agents work together: which words are one, which are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest
from typing_extensions import override

from app.core.commands import Command, parse
from app.core.hooks import FeatureCommand, Hook, Hooks
from app.features.together.model import Act, Wish, read_wish

CALLED = {"codex": "codex-1", "claude": "claude", "claude code": "claude"}


class Wishes(Hook):
    """Reads the commands that have several agents work together."""

    command_names = get_args(Act)

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> Wish | None:
        return read_wish(line, agents)


WISHES = Wishes()
HOOKS = Hooks(WISHES)
BOTH = ("claude", "codex-1")


def wished(wish: Wish) -> Command:
    return Command(wish.act, own=FeatureCommand(wish.act, WISHES, wish))


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("review codex", wished(Wish("review", ("codex-1",)))),
        ("!Review @Claude Code ", wished(Wish("review", ("claude",)))),
        ("panel claude codex: why?", wished(Wish("panel", BOTH, "why?"))),
        (
            "panel Claude Code and @codex:\nwhy\nnow?",
            wished(Wish("panel", BOTH, "why\nnow?")),
        ),
        ("race codex, claude: fix: it", wished(Wish("race", BOTH[::-1], "fix: it"))),
        ("!review nemo", Command("help")),
        ("!panel codex: alone?", Command("help")),
    ],
)
def test_agents_are_named_for_a_review_a_panel_or_a_race(text: str, command: Command) -> None:
    assert parse(text, CALLED, HOOKS) == command


@pytest.mark.parametrize(
    "text",
    [
        "review",
        "review this",
        "review codex please",
        "review codex's work",
        "review claude codex",
        "panel codex codex: why?",
        "panel of claude codex: why?",
        "panel claude codex",
        "panel claude codexes: why?",
        "race claude and: codex",
        "race conditions: where do we have them?",
    ],
)
def test_words_about_reviews_panels_and_races_are_for_the_agent(text: str) -> None:
    assert parse(text, CALLED, HOOKS) is None
