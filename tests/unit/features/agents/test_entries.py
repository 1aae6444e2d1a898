"""What people type about an entry: keys and values, and nothing of it repeated in an error."""

from __future__ import annotations

import pytest

from app.features.agents.entries import NotAnEntry, parse_assignments, parse_removals, read_object

SECRET = "hunter22hunter22"


def test_a_value_is_json_if_it_parses_and_a_dot_leads_into_a_table() -> None:
    parsed = parse_assignments(
        ["model=a=b", "visible=false", "limits.max_turns=2", 'limits={"resume": true}', "auth=null"]
    )

    assert parsed == {
        "model": "a=b",
        "visible": False,
        "limits": {"resume": True},
        "auth": None,
    }


def test_variables_and_credentials_are_text() -> None:
    parsed = parse_assignments(["env.PORT=8080", "credentials.slack.bot_token=1", "env.EMPTY="])

    assert parsed == {
        "env": {"PORT": "8080", "EMPTY": ""},
        "credentials": {"slack": {"bot_token": "1"}},
    }


def test_a_key_alone_is_removed() -> None:
    parsed = parse_removals(["model", "env.PORT", "credentials.slack"])

    assert parsed == {"model": None, "env": {"PORT": None}, "credentials": {"slack": None}}


@pytest.mark.parametrize(
    "words", [[SECRET], [f"={SECRET}"], [f"env.={SECRET}"], ["model=a", f"model.x={SECRET}"]]
)
def test_what_is_wrong_is_not_repeated(words: list[str]) -> None:
    with pytest.raises(NotAnEntry) as refused:
        parse_assignments(words)

    assert SECRET not in str(refused.value)


def test_only_a_json_object_is_an_entry() -> None:
    for text in ("", "[]", f'{{"a": "{SECRET}"'):
        with pytest.raises(NotAnEntry) as refused:
            read_object(text)
        assert SECRET not in str(refused.value)
    with pytest.raises(NotAnEntry):
        parse_removals([f"model={SECRET}"])
