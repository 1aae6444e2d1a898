"""Who answers: one rule for all places, decided once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.intake.floor import decide
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.types import PlaceView, Speaker, Untagged

UNTAGGED = Heard(
    place=PlaceKey("slack", "C1:1"),
    external="C1:1",
    message_id="m1",
    speaker=Speaker("U1", "Ann"),
    text="hello",
)
ALONE = PlaceView(present=("claude",))
TWO = PlaceView(present=("claude", "codex"), latest="codex")


def test_every_mentioned_agent_answers_once() -> None:
    heard = replace(UNTAGGED, mentions=("codex", "claude", "codex"))

    assert decide(heard, ALONE, "mention").agents == ("codex", "claude")


def test_a_mention_beats_a_reply() -> None:
    heard = replace(UNTAGGED, mentions=("codex",), reply_to="claude")

    assert decide(heard, TWO, "all").agents == ("codex",)


def test_a_reply_goes_to_the_agent_that_is_replied_to() -> None:
    assert decide(replace(UNTAGGED, reply_to="claude"), TWO, "mention").agents == ("claude",)


def test_the_only_agent_takes_an_untagged_message() -> None:
    assert decide(UNTAGGED, ALONE, "mention").agents == ("claude",)


def test_where_an_agent_must_be_addressed_even_the_only_one_stays_silent() -> None:
    heard = replace(UNTAGGED, only_agent_answers=False)

    assert decide(heard, ALONE, "all").agents == ()


@pytest.mark.parametrize(
    ("untagged", "agents"),
    [("mention", ()), ("latest", ("codex",)), ("all", ("claude", "codex"))],
)
def test_where_several_agents_are_the_setting_decides(
    untagged: Untagged, agents: tuple[str, ...]
) -> None:
    assert decide(UNTAGGED, TWO, untagged).agents == agents


def test_what_a_place_is_set_to_beats_the_setting() -> None:
    assert decide(UNTAGGED, replace(TWO, listen="all"), "mention").agents == ("claude", "codex")


def test_the_agent_addressed_last_must_still_be_here() -> None:
    assert decide(UNTAGGED, replace(TWO, latest="gone"), "latest").agents == ()


@pytest.mark.parametrize("place", [PlaceView(), ALONE, TWO])
def test_what_an_agent_says_starts_nothing(place: PlaceView) -> None:
    speaker = Speaker("B1", "Codex", kind="agent")
    heard = replace(UNTAGGED, speaker=speaker, mentions=("claude",))

    assert decide(heard, place, "all").agents == ()


def test_every_decision_says_why() -> None:
    assert decide(UNTAGGED, PlaceView(), "all").reason


@pytest.mark.parametrize("place", [PlaceView(), ALONE, TWO, replace(TWO, listen="all")])
def test_who_holds_a_place_takes_its_untagged_messages(place: PlaceView) -> None:
    floor = decide(UNTAGGED, replace(place, holder="gemini"), "latest")

    assert floor.agents == ("gemini",)
    assert floor.reason == "holder"


AGENTS = st.sampled_from(["claude", "codex", "gemini"])


@given(
    mentions=st.lists(AGENTS).map(tuple),
    reply_to=st.none() | AGENTS,
    only=st.booleans(),
    present=st.lists(AGENTS, unique=True).map(tuple),
    untagged=st.sampled_from(["mention", "latest", "all"]),
)
def test_a_holder_changes_nothing_for_messages_that_name_an_agent_or_must_name_one(
    mentions: tuple[str, ...],
    reply_to: str | None,
    only: bool,
    present: tuple[str, ...],
    untagged: Untagged,
) -> None:
    heard = replace(UNTAGGED, mentions=mentions, reply_to=reply_to, only_agent_answers=only)
    place = PlaceView(present=present, latest="codex")

    held = decide(heard, replace(place, holder="gemini"), untagged)

    named = mentions or reply_to is not None or not only
    assert held == decide(heard, place, untagged) if named else held.agents == ("gemini",)
