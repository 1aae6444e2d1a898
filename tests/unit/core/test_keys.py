"""Session keys: what goes in comes out, and no two conversations share a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import NotFound
from app.model.keys import PlaceKey, SessionKey
from app.services import find_area

externals = st.text(min_size=1)
agents = st.from_regex(r"\A[a-z][a-z0-9-]{0,30}\Z")
keys = st.builds(SessionKey, st.sampled_from(["web", "slack", "chat2"]), externals, agents)


@given(keys)
def test_a_key_survives_being_written_and_read(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key


@given(keys, keys)
def test_two_keys_are_written_alike_only_if_they_are_equal(
    one: SessionKey, two: SessionKey
) -> None:
    assert (str(one) == str(two)) == (one == two)


@pytest.mark.parametrize(
    ("text", "external"),
    [
        ("slack:C1:1700.2:codex", "C1:1700.2"),
        ("github:owner/repo:7:claude", "owner/repo:7"),
        ("web:t1:demo", "t1"),
    ],
)
def test_the_documented_forms_are_read(text: str, external: str) -> None:
    assert SessionKey.parse(text).external == external


@given(st.text())
def test_any_other_text_is_refused_or_read_back_as_it_was(text: str) -> None:
    try:
        key = SessionKey.parse(text)
    except NotFound:
        return
    assert str(key) == text


def test_the_adapter_of_a_key_is_qualified_by_its_agent() -> None:
    assert SessionKey("slack", "C1:1.2", "codex").adapter == "slack:codex"


@pytest.mark.parametrize(
    ("place", "area"),
    [
        (PlaceKey("slack", "C1:1700.1"), PlaceKey("slack", "C1")),
        (PlaceKey("slack", "C1"), None),
        (PlaceKey("linear", "ENG-12"), PlaceKey("linear", "ENG")),
        (PlaceKey("linear", "ENG"), None),
        (PlaceKey("linear", "0a1b2c3d-0a1b-4c2d-8e3f-001122334455"), None),
        (PlaceKey("github", "octo/cat:7"), None),
        (PlaceKey("web", "t1"), None),
    ],
)
def test_threads_have_a_channel_and_issues_a_team(place: PlaceKey, area: PlaceKey | None) -> None:
    assert find_area(place) == area
